"""What every sink of a pipeline has."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.model import Model
from ottla.pipelines.surroundings import How, Surroundings


class Sink(Model):
    type: str
    guarantee: ClassVar[str] = "at least once"
    """How often a row arrives, whoever is killed in between."""

    def describe(self) -> str:
        """In a few words, without secrets."""
        return self.type

    def promise(self) -> str:
        """How often a row arrives here."""
        return self.guarantee

    def try_to_open(self, around: Surroundings) -> None:
        """Open the database that it is about, if any, and close it again; ConfigError where that cannot be done."""

    def check(self, frame: DataFrame, around: Surroundings) -> None:
        """ConfigError where such rows cannot be written; asked before anything runs."""

    def cannot_begin_anew(self, around: Surroundings) -> str | None:
        """Return why rows would be lost here if the pipeline read from elsewhere with a new checkpoint; None if none would."""
        return None

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        """Begin to write a stream."""
        raise ConfigError(f"type {self.type} cannot be written")
