"""`type: files`: files in a folder, by Spark's own writers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.address import check_files
from ottla.pipelines.model import NameList, Scalar
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import TIMES, beside
from ottla.pipelines.sinks.batch_log import BatchLog, Owner, cannot_begin_anew, ensure_fits
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
    partition_by: NameList = []
    """Columns that become folders."""
    options: dict[str, Scalar] = {}
    """More options of Spark's writer, such as `header: true` of CSV."""

    _path = field_validator("path")(check_files)

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    def check(self, frame: DataFrame, around: Surroundings) -> None:
        with of_key("path"):
            ensure_fits(BatchLog(frame.sparkSession, self.folder(around)), around.name, around.home, around.checkpoint)

    def cannot_begin_anew(self, around: Surroundings) -> str | None:
        return cannot_begin_anew(self.folder(around))

    def folder(self, around: Surroundings) -> str:
        return around.path(self.path)

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        log = BatchLog(frame.sparkSession, self.folder(around))
        ensure_fits(log, around.name, around.home, around.checkpoint)
        log.claim(Owner(around.name, str(around.home)))
        writer = how.writer(frame.drop(*beside(frame))).format(self.format)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        times = {} if self.format == "parquet" else TIMES
        return writer.options(**times | around.options(self.options)).start(self.folder(around))
