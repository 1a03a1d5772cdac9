"""Topics as streams, through Spark, a broker and checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla import Admin
from ottla.spark import lag
from tests.patience import eventually
from tests.spark.topics import Topics, values

pytestmark = pytest.mark.behaviour("D4")


def run(frame: DataFrame, checkpoint: Path, batches: Callable[[DataFrame, int], None]) -> StreamingQuery:
    """Run a query to the end of what is there; StreamingQueryException if it fails."""
    query = (
        frame.writeStream.foreachBatch(batches)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    return query


class Seen:
    """The rows of each batch, by batch id."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.batches: dict[int, list[str]] = {}
        self.fail_at = fail_at

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = sorted(bytes(row.value).decode() for row in frame.select("value").collect())
        if batch == self.fail_at:
            raise RuntimeError("the sink fell over")


def test_available_records_are_read_in_limited_batches(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        topics.send(topic, *(f"{partition}{n}" for n in range(6)), partition=partition)
    seen = Seen()
    query = run(topics.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4), tmp_path, seen)
    assert [len(rows) for rows in seen.batches.values()] == [4, 4, 4]
    assert sorted(row for rows in seen.batches.values() for row in rows) == [
        f"{p}{n}" for p in (0, 1) for n in range(6)
    ]
    last = query.recentProgress[-1].sources[0]
    assert json.loads(last.endOffset)[topic] == json.loads(last.latestOffset or "{}")[topic] == {"0": 6, "1": 6}
    assert "PythonMicroBatchStream" in last.description  # Spark asks no Python code for it, as docs/spark.md says


def test_a_restarted_query_continues_from_its_checkpoint(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, "one")
    first, second = Seen(), Seen()
    run(topics.stream(subscribe=topic, startingOffsets="earliest"), tmp_path, first)
    topics.send(topic, "two")
    run(topics.stream(subscribe=topic, startingOffsets="earliest"), tmp_path, second)
    assert (first.batches, second.batches) == ({0: ["one"]}, {1: ["two"]})


def test_a_query_from_the_latest_offset_remembers_it_when_its_first_batch_is_replayed(
    topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.send(topic, "before")
    run(topics.stream(subscribe=topic), tmp_path, Seen())
    # As after a crash: the offsets of batch 0 are in Spark's log, and its end is not.
    for file in (tmp_path / "commits").iterdir():
        file.unlink()
    topics.send(topic, "after")
    seen = Seen()
    run(topics.stream(subscribe=topic), tmp_path, seen)
    assert seen.batches == {0: [], 1: ["after"]}


def test_a_batch_that_failed_is_read_again_as_it_was(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, "one", "two")
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "earliest"}
    failed = Seen(fail_at=0)
    with pytest.raises(StreamingQueryException, match="the sink fell over"):
        run(topics.stream(**options), tmp_path, failed)
    topics.send(topic, "three")
    again = Seen()
    run(topics.stream(**options), tmp_path, again)
    assert failed.batches == {0: ["one", "two"]}
    assert again.batches == {0: ["one", "two"], 1: ["three"]}


def test_a_topic_that_appears_joins_a_running_pattern(topics: Topics, tmp_path: Path) -> None:
    pattern = {"subscribePattern": f"{topics.prefix}-x.*"}
    topics.send(topics.create("x1"), "old")
    run(topics.stream(**pattern), tmp_path, Seen())
    topics.send(topics.create("x2"), "new")
    seen = Seen()
    run(topics.stream(**pattern), tmp_path, seen)
    assert seen.batches == {1: ["new"]}


def test_partitions_that_are_added_are_read_from_their_beginning(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, "old")
    run(topics.stream(subscribe=topic), tmp_path, Seen())
    topics.grow(topic, 3)
    topics.send(topic, "new", partition=2)
    seen = Seen()
    run(topics.stream(subscribe=topic), tmp_path, seen)
    assert seen.batches == {1: ["new"]}


def test_records_deleted_under_a_query_stop_it_or_are_left_out(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "earliest"}
    topics.send(topic, "0", "1")
    run(topics.stream(**options), tmp_path, Seen())
    topics.send(topic, *map(str, range(2, 10)))
    topics.delete_before(topic, 8)
    with pytest.raises(StreamingQueryException, match=f"partition {topic}-0 starts at offset 8, after offset 2"):
        run(topics.stream(**options), tmp_path, Seen())
    seen = Seen()
    run(topics.stream(**options, failOnDataLoss="false"), tmp_path, seen)
    assert seen.batches == {1: ["8", "9"]}


def test_a_topic_that_was_deleted_stops_the_query_with_an_error(topics: Topics, tmp_path: Path) -> None:
    gone, left = topics.create("gone"), topics.create("left")
    options: dict[str, Any] = {"subscribe": f"{gone},{left}", "startingOffsets": "earliest"}
    topics.send(gone, "one")
    run(topics.stream(**options), tmp_path, Seen())
    topics.delete(gone)
    topics.send(left, "two")
    with pytest.raises(
        StreamingQueryException, match=f"partition {gone}-0 does not exist any more, and .* offset 1; set the"
    ) as error:
        run(topics.stream(**options), tmp_path, Seen())
    assert "Traceback" not in str(error.value)
    seen = Seen()
    run(topics.stream(**options, failOnDataLoss="false"), tmp_path, seen)
    assert seen.batches == {1: ["two"]}


def test_a_topic_that_was_recreated_stops_the_query_with_an_error(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "earliest"}
    topics.send(topic, "old")
    run(topics.stream(**options), tmp_path, Seen())
    topics.delete(topic)
    topics.create()
    topics.send(topic, "new", "newer")
    with pytest.raises(
        StreamingQueryException, match=f"topic {topic} was deleted and created again; the query had read"
    ):
        run(topics.stream(**options), tmp_path, Seen())
    seen = Seen()
    run(topics.stream(**options, failOnDataLoss="false"), tmp_path, seen)
    assert seen.batches == {1: ["new", "newer"]}


def test_a_batch_that_is_replayed_is_not_read_from_another_topic_of_that_name(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "earliest"}
    topics.send(topic, "old")
    with pytest.raises(StreamingQueryException, match="the sink fell over"):
        run(topics.stream(**options), tmp_path, Seen(fail_at=0))
    topics.delete(topic)
    topics.create()
    topics.send(topic, "new")
    with pytest.raises(
        StreamingQueryException, match="was deleted and created again: offsets 0 to 0 of the one before"
    ):
        run(topics.stream(**options), tmp_path, Seen())


def test_a_group_is_reported_how_far_the_query_is_to_the_last_batch(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=2)
    topics.send(topic, *"abcde")
    options = {"startingOffsets": "earliest", "commitOffsetsToGroup": f"of-{topic}", "maxOffsetsPerTrigger": 2}
    query = run(topics.stream(subscribe=topic, **options), tmp_path, Seen())
    with Admin(bootstrap_servers=topics.servers) as admin:
        described = admin.list_consumer_group_offsets(f"of-{topic}")
    assert {tp.partition: found.offset for tp, found in described.items() if found} == {0: 5, 1: 0}
    assert [lag(progress)[0]["maxOffsetsBehindLatest"] for progress in query.recentProgress[:3]] == [3, 1, 0]


def test_an_option_for_batches_only_stops_a_stream_with_an_error(topics: Topics, tmp_path: Path) -> None:
    with pytest.raises(
        StreamingQueryException, match="option endingOffsets is only for batch queries; a stream runs until"
    ):
        run(topics.stream(subscribe=topics.create(), endingOffsets="latest"), tmp_path, Seen())


def test_a_query_that_waits_for_records_continues_when_they_arrive_and_stops_on_request(
    topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.send(topic, "a")
    frame = topics.stream(subscribe=topic, startingOffsets="earliest", idleWait="100s")
    found: list[str] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, number: found.extend(values(batch.collect())))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="1 millisecond")
        .start()
    )
    eventually(lambda: found == ["a"])
    topics.send(topic, "b")
    eventually(lambda: found == ["a", "b"])
    began = time.monotonic()
    query.stop()
    assert time.monotonic() - began < 50
