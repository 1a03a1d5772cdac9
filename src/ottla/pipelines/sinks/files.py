"""`type: files`: files in a folder, by Spark's own writers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.model import Scalar
from ottla.pipelines.rows import TIMES, beside
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings


class FilesSink(Sink):
    """New files for each batch; Spark's log beside them (`_spark_metadata`) says which count."""

    guarantee: ClassVar[str] = "exactly once, for readers that heed _spark_metadata, as Spark does"
    type: Literal["files"]
    format: Literal["csv", "json", "parquet"]
    """What is in the files."""
    path: str
    """The folder; relative to the pipeline file."""
    partition_by: list[str] = []
    """Columns that become folders."""
    options: dict[str, Scalar] = {}
    """More options of Spark's writer, such as `header: true` of CSV."""

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        writer = how.writer(frame.drop(*beside(frame))).format(self.format)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        times = {} if self.format == "parquet" else TIMES
        return writer.options(**times | around.options(self.options)).start(around.path(self.path))
