"""Kafka Streams' operations on Spark, against a model in plain Python over events that are random, late and out of order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.errors import ConfigError
from ottla.spark import streams
from tests.spark.streams import model
from tests.spark.streams.feed import Event, all_of, fed, moment, results, rows, second
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

BATCHES, SIZE = 4, 15
Batches = list[list[Event]]


def events(seed: int, *, first: int = 0, tombstones: bool = False) -> Batches:
    """Return events in which time advances by two minutes a batch; some events are early, some very late."""
    chance = random.Random(seed)
    found: Batches = []
    for batch in range(BATCHES):
        base = 120 * batch
        times = [base + chance.randrange(-200 if chance.random() < 0.2 else -30, 120) for _ in range(SIZE)]
        numbers = range(first + batch * SIZE, first + (batch + 1) * SIZE)
        values = [None if tombstones and chance.random() < 0.3 else chance.randrange(100) for _ in numbers]
        found.append([Event(n, chance.choice("abc"), t, v) for n, t, v in zip(numbers, times, values, strict=True)])
    return found


@pytest.mark.behaviour("D3")
def test_tumbling_windows_are_emitted_once_when_they_are_closed(topics: Topics, tmp_path: Path) -> None:
    given = events(1)
    windows = streams.tumbling(fed(topics, "in", given), "at", "1 minute", grace="20 seconds", keys=["k"])
    counted = windows.agg(F.count("*").alias("n"), F.sum("v").alias("v"))
    found = rows(
        counted, streams.SUPPRESSED, tmp_path, lambda r: ((second(r.window.start), second(r.window.end)), r.k, r.n, r.v)
    )
    assert found == model.closed_windows(given, 20, lambda t: model.tumbling(t, 60))
    assert len(found) > 10


def test_hopping_windows_are_emitted_once_when_they_are_closed(topics: Topics, tmp_path: Path) -> None:
    given = events(2)
    windows = streams.hopping(fed(topics, "in", given), "at", "1 minute", "20 seconds", grace="30 seconds", keys=["k"])
    counted = windows.agg(F.count("*").alias("n"), F.sum("v").alias("v"))
    found = rows(
        counted, streams.SUPPRESSED, tmp_path, lambda r: ((second(r.window.start), second(r.window.end)), r.k, r.n, r.v)
    )
    assert found == model.closed_windows(given, 30, lambda t: model.hopping(t, 60, 20))
    assert len(found) > 30


def test_sessions_end_with_a_pause(topics: Topics, tmp_path: Path) -> None:
    given = events(3)
    windows = streams.session(fed(topics, "in", given), "at", "15 seconds", grace="10 seconds", keys=["k"])
    counted = windows.agg(F.count("*").alias("n"))
    found = rows(
        counted, streams.SUPPRESSED, tmp_path, lambda r: ((second(r.window.start), second(r.window.end)), r.k, r.n)
    )
    assert found == model.closed_sessions(given, 10, 15)
    assert any(count > 1 for _, _, count in found)


def test_without_suppress_a_window_is_emitted_with_each_change(topics: Topics, tmp_path: Path) -> None:
    given = events(4)
    windows = streams.tumbling(fed(topics, "in", given), "at", "1 minute", grace="1 hour", keys=["k"])
    found = results(windows.agg(F.count("*").alias("n")), streams.EAGER, tmp_path)
    last = {(second(row.window.start), row.k): row.n for batch in found for row in batch}
    whole = model.closed_windows([*given, [Event(0, "z", 10**6, 0)]], 0, lambda t: model.tumbling(t, 60))
    every: dict[tuple[int, str], int] = {}
    for event in all_of(given):
        place = (event.t // 60 * 60, event.k)
        every[place] = every.get(place, 0) + 1
    assert last == every
    assert whole
    assert len(found) == BATCHES


def test_the_first_of_each_key_is_kept_as_long_as_it_is_remembered(topics: Topics, tmp_path: Path) -> None:
    given = events(5)
    found = rows(
        streams.dedupe(fed(topics, "in", given), "k", time="at", within="100 seconds"),
        "append",
        tmp_path,
        lambda r: r.n,
    )
    assert found == model.first_of_each(given, 100)
    assert len(found) > 3


def test_a_table_has_the_latest_row_of_each_key_and_a_tombstone_replaces_it(topics: Topics, tmp_path: Path) -> None:
    given = events(6, tombstones=True)
    table = streams.as_table(fed(topics, "in", given), "k")
    found = results(table, "update", tmp_path)
    assert [sorted(((row.k, row.v) for row in batch), key=str) for batch in found] == model.table_changes(given)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_stream_is_joined_with_the_row_that_a_table_has_for_its_key_at_that_time(
    topics: Topics, tmp_path: Path, how: str
) -> None:
    asks, changes = events(7), events(8, tombstones=True)
    stream = fed(topics, "asks", asks).select("n", "k", "at")
    table = fed(topics, "table", changes).select(
        "k", "at", F.col("v").alias("known"), F.col("v").isNull().alias("_tombstone")
    )
    joined = streams.table_join(stream, table, "k", time="at", how=how)  # type: ignore[arg-type]
    assert joined.columns == ["n", "k", "at", "known"]
    found = sorted(((r.n, r.known) for batch in results(joined, "append", tmp_path) for r in batch), key=str)
    assert found == model.joined_with_table(asks, changes, how == "left")


def test_rows_of_two_streams_that_are_close_in_time_meet_once_unless_one_was_late(
    topics: Topics, tmp_path: Path
) -> None:
    left, right = events(9), events(10, first=1000)
    lefts = fed(topics, "left", left).select("n", "k", "at")
    rights = fed(topics, "right", right).select(F.col("n").alias("m"), "k", F.col("at").alias("to"))
    joined = streams.stream_join(
        lefts, rights, "k", left_time="at", right_time="to", within="30 seconds", grace="40 seconds"
    )
    found = rows(joined, "append", tmp_path, lambda r: (r.n, r.m))
    every = model.close_pairs(all_of(left), all_of(right), 30)
    together: Batches = [a + b for a, b in zip(left, right, strict=True)]
    on_time = model.never_late(together, 40)
    assert len(found) == len(set(found))
    assert set(found) <= every
    assert {(n, m) for n, m in every if n in on_time and m in on_time} <= set(found)
    assert len(found) > 10


def test_mistakes_are_reported_before_a_query_starts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a", moment(0))], "n int, k string, at timestamp")
    for call, reported in (
        (lambda: streams.tumbling(frame, "att", "1 minute"), "unknown column 'att'; did you mean 'at'?"),
        (lambda: streams.tumbling(frame, "n", "1 minute"), "column 'n' is int, not a timestamp; cast it"),
        (lambda: streams.as_table(frame, [], latest="at"), "keys is empty; give a column"),
        (lambda: streams.dedupe(frame, "k", time="at"), "time needs within, and within needs time"),
        (lambda: streams.table_join(frame, frame, "k", time="at"), "both sides have a column 'n'"),
    ):
        with pytest.raises(ConfigError) as error:
            call()
        assert reported in str(error.value)


def test_a_table_of_what_is_there_now_is_one_without_a_stream(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1, 0), ("b", 2, 1), ("a", 3, 2)], "k string, v int, offset int")
    assert sorted((r.k, r.v) for r in streams.as_table(frame, "k").collect()) == [("a", 3), ("b", 2)]
