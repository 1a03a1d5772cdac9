"""The base of all sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession

from ottla.errors import ConfigError
from ottla.pipelines.model import Model
from ottla.pipelines.pipeline_context import PipelineContext


class Source(Model):
    type: str

    def identity(self) -> str:
        """Return the identity of the source for checkpoints: a checkpoint can only be continued with the same one."""
        return self.describe()

    def describe(self) -> str:
        """Return a short description without secrets."""
        return self.type

    def find_misplaced(self, context: PipelineContext) -> Iterator[tuple[str, str]]:
        """Yield the keys that name a missing or wrong file, and the error text. Only files of this machine are read."""
        yield from ()

    def try_to_open(self, context: PipelineContext) -> None:
        """Open the source's database, if it has one, and close it again; ConfigError if that fails."""

    def check_server(self, context: PipelineContext) -> None:
        """Check the configuration against the server without a change there, for `validate`.

        ConfigError for a mistake, DatabaseError if the server is not available.
        """

    def find_schemas(self, context: PipelineContext) -> Mapping[str, str]:
        """Return the schemas to which registered keys and values are converted, as options; empty without any.

        ConfigError if a subject is missing, SchemaRegistryError if the registry does not answer.
        """
        return {}

    def read(self, spark: SparkSession, context: PipelineContext, tolerant: bool) -> DataFrame:
        """Return the stream of rows, if `tolerant` without those that cannot be read."""
        raise ConfigError(f"type {self.type} cannot be read")

    def find_leftovers(self, context: PipelineContext) -> Iterator[str]:
        """Yield a short description of each object that the source created elsewhere and that is not deleted automatically."""
        yield from ()

    def clean(self, context: PipelineContext) -> None:
        """Delete these objects."""

    def read_bad(self, spark: SparkSession, context: PipelineContext) -> DataFrame | None:
        """Return the stream of all rows with the original record, and the error of those that cannot be read.

        None if the source is not a topic: there is no record to put aside.
        """
        return None
