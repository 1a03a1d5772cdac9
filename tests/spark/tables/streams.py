"""Streams from topics into tables, as tests need them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.tables.lake import Lake
from tests.spark.topics import Topics


def numbers(topics: Topics, topic: str, **options: Any) -> DataFrame:
    stream = topics.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4, **options)
    return stream.selectExpr("cast(cast(value as string) as bigint) as n", "offset")


def start(frame: DataFrame, lake: Lake, checkpoint: Path, mode: str = "append", **options: Any) -> StreamingQuery:
    """A stream into the table, of what is there."""
    return (
        frame.writeStream.format(lake.format)
        .options(**lake.spark_options, **options)
        .option("checkpointLocation", str(checkpoint))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start(lake.table)
    )


def run(frame: DataFrame, lake: Lake, checkpoint: Path, mode: str = "append", **options: Any) -> None:
    """The same, to its end."""
    assert start(frame, lake, checkpoint, mode, **options).awaitTermination(120)


def forget_last_batch(checkpoint: Path) -> None:
    """Return to the state after a crash between the table's commit and Spark's."""
    last = max((file for file in (checkpoint / "commits").iterdir() if file.name.isdigit()), key=lambda f: int(f.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)


def once(*found: int) -> Counter[int]:
    return Counter(dict.fromkeys(found, 1))
