"""What every source of a pipeline has."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from ottla.errors import ConfigError
from ottla.pipelines.model import Model
from ottla.pipelines.surroundings import Surroundings


class Source(Model):
    type: str

    def identity(self) -> str:
        """What a checkpoint is about: it goes on only with the same."""
        return self.describe()

    def describe(self) -> str:
        """In a few words, without secrets."""
        return self.type

    def read(self, spark: SparkSession, around: Surroundings, tolerant: bool) -> DataFrame:
        """The stream of its rows; without those that cannot be read, if they are tolerated."""
        raise ConfigError(f"type {self.type} cannot be read")

    def read_bad(self, spark: SparkSession, around: Surroundings) -> DataFrame | None:
        """The stream of the records that cannot be read, as dead letters; None where each can be."""
        return None
