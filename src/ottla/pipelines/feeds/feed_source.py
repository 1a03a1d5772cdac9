"""Feeds as Spark finds them: a data source is registered for each pipeline.

Spark is given no options, so that what a feed must know to log in is in no plan of Spark's.
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
"""The folder beside a pipeline's checkpoint in which its rows wait."""


class FeedSource(DataSource):
    """What the data sources of all feeds have in common."""

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
    """The rows of a feed, for the pipeline `name` whose folder is `home`."""
    format_name = f"feed of {name}"
    about = {"format": format_name, "feed": feed, "columns": columns, "folder": home / SPOOL}
    made = type("PipelineFeed", (FeedSource,), about)
    spark.dataSource.register(made)
    return spark.readStream.format(format_name).load()
