"""The base of all sinks."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.model import Model
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings


class Sink(Model):
    type: str
    guarantee: ClassVar[str] = "at least once"
    """The delivery guarantee of a row, also if a process is killed."""

    def describe(self) -> str:
        """Return a short description without secrets."""
        return self.type

    def promise(self) -> str:
        """Return the delivery guarantee with this configuration."""
        return self.guarantee

    def try_to_open(self, context: PipelineContext) -> None:
        """Open the sink's database, if it has one, and close it again; ConfigError if that fails."""

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        """Raise ConfigError if such rows cannot be written. Called before any query starts."""

    def explain_lost_rows(self, context: PipelineContext) -> str | None:
        """Return the reason why rows would be lost if the pipeline started with a new checkpoint; None if none would be."""
        return None

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        """Start to write a stream."""
        raise ConfigError(f"type {self.type} cannot be written")
