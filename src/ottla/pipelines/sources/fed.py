"""Sources that are a feed: their rows are fetched, kept and then handed to Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.feeds.feed_source import stream_of
from ottla.pipelines.rows import BESIDE
from ottla.pipelines.sources.source import Source
from ottla.pipelines.surroundings import Surroundings


class FedSource(Source):
    """What such a source says instead of `read`."""

    def feed(self, around: Surroundings) -> tuple[Feed, StructType]:
        """What is asked for rows, and the columns of these; errors where nothing will come."""
        raise ConfigError(f"type {self.type} cannot be read")

    def read(self, spark: SparkSession, around: Surroundings, tolerant: bool) -> DataFrame:
        feed, columns = self.feed(around)
        return stream_of(spark, around.reader_name, feed, columns, around.home)


def not_beside(what: str, columns: StructType) -> StructType:
    """The columns, if none has a name that means something else here."""
    for name in columns.names:
        if name in BESIDE:
            raise ConfigError(
                f"{what} has a column {name!r}, which here is a part of a record; leave it out of columns"
            )
    return columns
