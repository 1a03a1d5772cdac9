"""Feeds as data sources of Spark: a data source is registered for each pipeline.

The feed is an attribute of the class and not an option of the reader, so that credentials are not in Spark's plans.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.feeds.feed_reader import FeedReader
from ottla.pipelines.feeds.spool import Spool

SPOOL = "spool"
"""The folder next to a pipeline's checkpoint with its fetched rows."""


class FeedSource(DataSource):
    """The base of the data sources of all feeds."""

    format: ClassVar[str]
    feed: ClassVar[Feed]
    columns: ClassVar[StructType]
    folder: ClassVar[Path]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> StructType:
        return self.columns

    def streamReader(self, schema: StructType) -> FeedReader:
        return FeedReader(self.feed, Spool(self.folder, to_arrow_schema(schema, timezone="UTC")))


def stream_of(spark: SparkSession, name: str, feed: Feed, columns: StructType, home: Path) -> DataFrame:
    """Return the rows of a feed, for the pipeline `name` with the folder `home`."""
    format_name = f"feed of {name}"
    about = {"format": format_name, "feed": feed, "columns": columns, "folder": home / SPOOL}
    made = type("PipelineFeed", (FeedSource,), about)
    spark.dataSource.register(made)
    return spark.readStream.format(format_name).load()
