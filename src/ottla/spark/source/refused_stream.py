"""A stream that cannot start, and says why.

Spark reports an error in making a stream's reader as an error of its own, without the reason; so the reader is made,
and the first thing Spark asks of it raises.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from ottla.errors import OttlaError
from ottla.spark.failure import plainly


class RefusedStream(DataSourceStreamReader):
    """Raises the same error whatever is asked."""

    def __init__(self, error: OttlaError) -> None:
        self.error = error

    def getDefaultReadLimit(self) -> NoReturn:
        self.refuse()

    def initialOffset(self) -> NoReturn:
        self.refuse()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> NoReturn:
        self.refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        self.refuse()

    def read(self, partition: Any) -> NoReturn:
        self.refuse()

    def refuse(self) -> NoReturn:
        with plainly():
            raise self.error
