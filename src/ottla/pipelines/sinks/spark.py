"""`type: spark`: any other format that Spark writes streams to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.model import Scalar
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import metadata_columns
from ottla.pipelines.sinks.batch_log import FILE_FORMATS, BatchLog, Owner, ensure_fits, explain_lost_rows
from ottla.pipelines.sinks.sink import Sink


class SparkSink(Sink):
    """Passes format and options to Spark."""

    guarantee: ClassVar[str] = "that of the format; at least once if it has none"
    type: Literal["spark"]
    format: str
    """The name of the format."""
    options: dict[str, Scalar] = {}
    """Its options."""

    def describe(self) -> str:
        return f"Spark's {self.format}"

    def folder(self, context: PipelineContext) -> str | None:
        """Return the folder of Spark's file sink; None if the format has no such sink, or no folder is given."""
        options = {name.lower(): text for name, text in context.options(self.options).items()}
        return options.get("path") if self.format.lower() in FILE_FORMATS else None

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        if (folder := self.folder(context)) is not None:
            with of_key("options"):
                ensure_fits(BatchLog(frame.sparkSession, folder), context.name, context.home, context.checkpoint)

    def explain_lost_rows(self, context: PipelineContext) -> str | None:
        folder = self.folder(context)
        return None if folder is None else explain_lost_rows(folder)

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        if (folder := self.folder(context)) is not None:
            log = BatchLog(frame.sparkSession, folder)
            ensure_fits(log, context.name, context.home, context.checkpoint)
            log.claim(Owner(context.name, str(context.home)))
        writer = query_settings.writer(frame.drop(*metadata_columns(frame))).format(self.format)
        return writer.options(**context.options(self.options)).start()
