"""A stream that cannot start, with the reason.

Spark replaces an error in the creation of a stream's reader by its own, without the reason. So the reader is created,
and its first method that Spark calls raises the error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from ottla.errors import OttlaError
from ottla.spark.failure import without_traceback


class RefusedStream(DataSourceStreamReader):
    """Raises the same error in each method."""

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
        with without_traceback():
            raise self.error
