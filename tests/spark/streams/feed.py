"""Streams that a test feeds batch by batch, and what comes out of each batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tests.spark.topics import Topics

BASE = 1_777_629_600
"""The second of 2026 at which the tests' time begins."""
SHAPE = "n int, k string, t int, v int"


class Event(NamedTuple):
    """A row: a number of its own, a key, a time in seconds since `BASE`, a value; no value is a tombstone."""

    n: int
    k: str
    t: int
    v: int | None


def moment(t: float) -> datetime:
    return datetime.fromtimestamp(BASE + t, UTC)


def second(at: datetime) -> int:
    """Return the seconds of a time from Spark, which is UTC without a zone."""
    return round(at.replace(tzinfo=UTC).timestamp()) - BASE


def fed(topics: Topics, name: str, batches: Sequence[Sequence[Event]]) -> DataFrame:
    """A stream of one partition that gives these batches, all of the same length, one each trigger."""
    (size,) = {len(batch) for batch in batches}
    topic = topics.create(name)
    topics.send(topic, *(json.dumps(event._asdict()) for batch in batches for event in batch))
    rows = topics.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=size)
    parsed = F.from_json(F.col("value").cast("string"), SHAPE).alias("e")
    return rows.select("offset", parsed).select(
        "e.n", "e.k", "e.v", "offset", F.timestamp_seconds(F.col("e.t") + BASE).alias("at")
    )


def results(frame: DataFrame, mode: str, folder: Path) -> list[list[Row]]:
    """Return the results of each micro-batch, without empty ones."""
    found: dict[int, list[Row]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        found[number] = batch.collect()

    writer = frame.writeStream.outputMode(mode).foreachBatch(keep).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder)).start()
    assert query.awaitTermination(120)
    return [found[number] for number in sorted(found) if found[number]]


def rows(frame: DataFrame, mode: str, folder: Path, read: Callable[[Row], Any]) -> list[Any]:
    """All that comes out, in order where that says nothing."""
    return sorted(read(row) for batch in results(frame, mode, folder) for row in batch)


def all_of(batches: Iterable[Sequence[Event]]) -> list[Event]:
    return [event for batch in batches for event in batch]
