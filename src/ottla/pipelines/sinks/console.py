"""`type: console`: rows in the terminal, for experiments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.rows import metadata_columns
from ottla.pipelines.sinks.sink import Sink


class ConsoleSink(Sink):
    """Prints each batch as a table on standard output."""

    type: Literal["console"]
    rows: int = Field(default=20, ge=1)
    """The most rows of a batch that are printed."""

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        writer = query_settings.writer(frame.drop(*metadata_columns(frame))).format("console")
        return writer.option("numRows", str(self.rows)).option("truncate", "false").start()
