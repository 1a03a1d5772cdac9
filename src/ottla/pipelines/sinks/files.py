"""`type: files`: files in a folder, written by Spark's file sink."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.address import check_files
from ottla.pipelines.model import NameList, Scalar
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import TIMES, metadata_columns
from ottla.pipelines.sinks.batch_log import BatchLog, Owner, ensure_fits, explain_lost_rows
from ottla.pipelines.sinks.sink import Sink


class FilesSink(Sink):
    """New files for each batch; Spark's log in the folder (`_spark_metadata`) lists the valid ones."""

    guarantee: ClassVar[str] = "exactly once, for readers of _spark_metadata, such as Spark"
    type: Literal["files"]
    format: Literal["csv", "json", "parquet"]
    """The format of the files."""
    path: str
    """The folder, relative to the pipeline file."""
    partition_by: NameList = []
    """Columns that become subfolders."""
    options: dict[str, Scalar] = {}
    """More options of Spark's writer, for example `header: true` for CSV."""

    _path = field_validator("path")(check_files)

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        with of_key("path"):
            ensure_fits(
                BatchLog(frame.sparkSession, self.folder(context)), context.name, context.home, context.checkpoint
            )

    def explain_lost_rows(self, context: PipelineContext) -> str | None:
        return explain_lost_rows(self.folder(context))

    def folder(self, context: PipelineContext) -> str:
        return context.path(self.path)

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        log = BatchLog(frame.sparkSession, self.folder(context))
        ensure_fits(log, context.name, context.home, context.checkpoint)
        log.claim(Owner(context.name, str(context.home)))
        writer = query_settings.writer(frame.drop(*metadata_columns(frame))).format(self.format)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        times = {} if self.format == "parquet" else TIMES
        return writer.options(**times | context.options(self.options)).start(self.folder(context))
