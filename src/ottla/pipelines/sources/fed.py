"""Sources with a feed: their rows are fetched, stored on disk and then read by Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.feeds.feed_source import stream_of
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import METADATA_COLUMNS
from ottla.pipelines.sources.source import Source


class FedSource(Source):
    """The base of sources that define `feed` in place of `read`."""

    def feed(self, context: PipelineContext) -> tuple[Feed, StructType]:
        """Return the feed and the columns of its rows; an error if the source cannot be read."""
        raise ConfigError(f"type {self.type} cannot be read")

    def read(self, spark: SparkSession, context: PipelineContext, tolerant: bool) -> DataFrame:
        feed, columns = self.feed(context)
        return stream_of(spark, context.reader_name, feed, columns, context.home)


def check_column_names(what: str, columns: StructType) -> StructType:
    """Return the columns; ConfigError if one has the name of a metadata column."""
    for name in columns.names:
        if name in METADATA_COLUMNS:
            raise ConfigError(
                f"{what} has a column {name!r}, which is the name of a metadata column here; leave it out of columns"
            )
    return columns
