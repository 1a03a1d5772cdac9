"""The base of all sinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.model import Model
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings

if TYPE_CHECKING:
    from ottla.schemas import Schema


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

    def find_misplaced(self, context: PipelineContext) -> Iterator[tuple[str, str]]:
        """Yield the keys that name a missing or wrong file, and the error text. Only files of this machine are read."""
        yield from ()

    def find_schemas(self, frame: DataFrame, context: PipelineContext) -> Mapping[str, Schema]:
        """Return the schemas with which registered values are written, by subject; nothing is registered.

        ConfigError if the rows do not fit, SchemaRegistryError if the registry does not answer.
        """
        return {}

    def explain_lost_rows(self, context: PipelineContext) -> str | None:
        """Return the reason why rows would be lost if the pipeline started with a new checkpoint; None if none would be."""
        return None

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        """Start to write a stream."""
        raise ConfigError(f"type {self.type} cannot be written")
