"""A sink in Python that does nothing with its rows: what is left for one after all that Spark does.

In a module of its own, which Spark's workers import.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage


@dataclass(frozen=True)
class Counted(WriterCommitMessage):
    """What a task reports."""

    rows: int


class CountingSink(DataSourceArrowWriter):
    """Counts."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:  # type: ignore[override]  # so in pyspark's own
        return Counted(sum(batch.num_rows for batch in iterator))
