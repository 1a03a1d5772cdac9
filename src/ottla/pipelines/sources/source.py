"""What every source of a pipeline has."""

from __future__ import annotations

from collections.abc import Iterator

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

    def misplaced(self, around: Surroundings) -> Iterator[tuple[str, str]]:
        """What it names that is not what it must be: the key, and what is wrong, by this machine's files alone."""
        yield from ()

    def try_to_open(self, around: Surroundings) -> None:
        """Open the database that it is about, if any, and close it again; ConfigError where that cannot be done."""

    def check_server(self, around: Surroundings) -> None:
        """Check what only its server knows before anything is made there, for `validate`.

        ConfigError for what is wrong, DatabaseError where the server cannot be asked.
        """

    def read(self, spark: SparkSession, around: Surroundings, tolerant: bool) -> DataFrame:
        """The stream of its rows; without those that cannot be read, if they are tolerated."""
        raise ConfigError(f"type {self.type} cannot be read")

    def left_behind(self, around: Surroundings) -> Iterator[str]:
        """What it has made elsewhere that does not go away by itself, each in a few words."""
        yield from ()

    def clean(self, around: Surroundings) -> None:
        """Take that away."""

    def read_bad(self, spark: SparkSession, around: Surroundings) -> DataFrame | None:
        """The stream of all its rows, with the record that each was, and what is wrong with those that cannot be read.

        None where the source is no topic, and there is nothing to put aside.
        """
        return None
