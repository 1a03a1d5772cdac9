"""A sink in Python that ignores its rows: the upper bound for any sink in Python, after the work of Spark.

It is a separate module, because Spark's workers import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage


@dataclass(frozen=True)
class Counted(WriterCommitMessage):
    """The message that a task commits."""

    rows: int


class CountingSink(DataSourceArrowWriter):
    """Counts the rows of a task."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:  # type: ignore[override]  # so in pyspark's own
        return Counted(sum(batch.num_rows for batch in iterator))
