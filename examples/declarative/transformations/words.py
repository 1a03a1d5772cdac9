"""Copy the words of the topic `lines` to the topic `words`, and to a table of the same name.

Spark schedules the updates.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
SERVERS = os.environ.get("WORDS_SERVERS", "127.0.0.1:9092")
LAKE = os.environ.get("WORDS_LAKE", "/tmp/words/lake")

dp.create_sink(
    "topic_words",
    "ottla",
    {"kafka.bootstrap.servers": SERVERS, "topic": "words", "deliveryGuarantee": "exactly_once"},
)
dp.create_sink("table_words", "ottla_delta", {"path": f"{LAKE}/words"})


@dp.temporary_view
def words() -> DataFrame:
    """Return each word of each line, with the offset of its line."""
    lines = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "lines")
        .option("startingOffsets", "earliest")
        .load()
    )
    return lines.select("offset", F.explode(F.split(F.col("value").cast("string"), " ")).alias("value"))


@dp.append_flow(target="topic_words")
def words_to_topic() -> DataFrame:
    return spark.readStream.table("words").select("value")


@dp.append_flow(target="table_words")
def words_to_table() -> DataFrame:
    return spark.readStream.table("words")
