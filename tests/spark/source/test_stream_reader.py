"""The offsets of micro-batches, with the calls that Spark makes, and a Kafka made of a few dicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from ottla.clock import ManualClock
from ottla.errors import ConfigError, ErrorCode, KafkaError, KafkaTimeoutError, OttlaError
from ottla.model import LATEST, TopicPartition
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.options import read_source_options
from ottla.spark.ranges.bounds import Bound, Everywhere
from ottla.spark.ranges.offset_reader import DataLossError
from ottla.spark.ranges.offsets import Offsets
from ottla.spark.ranges.plan import OffsetRange
from ottla.spark.source.idle import LOOKS
from ottla.spark.source.stream_reader import StreamReader
from tests.spark.topics import arrow_schema

A0, A1, A2 = (TopicPartition("a", p) for p in range(3))
ALL = ReadAllAvailable()
DECODING = Decoding(arrow_schema())


class Kafka:
    """Partitions with a first and a next offset."""

    def __init__(self, **partitions: tuple[int, int]) -> None:
        self.offsets = {TopicPartition("a", int(name[1:])): offsets for name, offsets in partitions.items()}
        self.closed = 0
        self.ids = {"a": "first"}
        self.reported: list[Offsets] = []
        self.refusal: OttlaError | None = None

    def is_selected(self, tp: TopicPartition) -> bool:
        return tp.topic == "a"

    def is_excluded(self, tp: TopicPartition) -> bool:
        return False

    def partitions(self, *, may_be_gone: bool = False) -> list[TopicPartition]:
        return sorted(self.offsets)

    def earliest(self, tps: Sequence[TopicPartition]) -> Offsets:
        return {tp: self.offsets[tp][0] for tp in tps}

    def latest(self, tps: Sequence[TopicPartition]) -> Offsets:
        return {tp: self.offsets[tp][1] for tp in tps}

    def topic_ids(self, topics: set[str]) -> dict[str, str]:
        return {topic: self.ids[topic] for topic in topics}

    def publish(self, offsets: Offsets) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.reported.append(offsets)

    def resolve(self, bound: Bound, tps: Sequence[TopicPartition]) -> Offsets:
        assert isinstance(bound, Everywhere)
        return self.latest(tps) if bound.offset == LATEST else self.earliest(tps)

    def close(self) -> None:
        self.closed += 1

    def grow(self, tp: TopicPartition, end: int) -> None:
        self.offsets[tp] = (self.offsets[tp][0], end)


class Query:
    """A streaming query: asks a reader as Spark does, and keeps its log of offsets through restarts."""

    def __init__(self, kafka: Kafka, **options: str) -> None:
        self.kafka, self.options = kafka, options
        self.log: list[str] = []
        self.clock = ManualClock()
        self.to_come: dict[float, Callable[[], None]] = {}
        self.restart()

    def restart(self, available_now: bool = False) -> None:
        given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"} | self.options
        kafka: Any = self.kafka
        self.reader = StreamReader(read_source_options(given), DECODING, lambda _: kafka, self.clock, self.pause)
        if available_now:
            self.reader.prepareForTriggerAvailableNow()

    def pause(self, seconds: float) -> None:
        """Time passes, and what is to come by then comes."""
        self.clock.advance(seconds)
        for moment in [moment for moment in self.to_come if moment <= self.clock.monotonic()]:
            self.to_come.pop(moment)()

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Plan the next batch, if there is one, and write its end to the log."""
        start = json.loads(self.log[-1]) if self.log else self.reader.initialOffset()
        end = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(start):
            return False
        self.log.append(json.dumps(end))
        return True

    def ranges(self, batch: int = -1) -> list[OffsetRange]:
        """Return the ranges of a batch in the log."""
        batch = range(len(self.log))[batch]
        start = json.loads(self.log[batch - 1]) if batch else self.reader.initialOffset()
        return [part.value for part in self.reader.partitions(start, json.loads(self.log[batch]))]


def test_a_stream_reads_records_written_after_its_start() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    assert query.plan()
    assert query.ranges() == []
    assert not query.plan()
    kafka.grow(A0, 9)
    assert query.plan()
    assert query.ranges() == [OffsetRange(A0, 5, 9)]


STRANGE = '{"b": {"0": 7}}'
"""The offset of a query on another topic."""


def test_the_checkpoint_of_a_query_of_other_topics_stops_with_a_remedy() -> None:
    query = Query(Kafka(p0=(0, 5)))
    query.log.append(STRANGE)
    with pytest.raises(
        DataLossError, match=r"has read b-0 up to offset 7, which .* give this one its own checkpointLocation"
    ):
        query.plan()


def test_topics_that_are_no_longer_subscribed_are_ignored_without_fail_on_data_loss() -> None:
    query = Query(Kafka(p0=(0, 5)), failOnDataLoss="false")
    query.log.append(STRANGE)
    assert query.plan()
    assert query.ranges() == [OffsetRange(A0, 0, 5)]


@pytest.mark.parametrize("offset", ["5", '{"logOffset": 0}', '"text"', "null"])
def test_the_checkpoint_of_another_kind_of_source_is_a_one_line_error(offset: str) -> None:
    query = Query(Kafka(p0=(0, 5)))
    query.log.append(offset)
    with pytest.raises(
        ConfigError, match=r"^the checkpoint is that of another query: .* is not an offset of topics; give"
    ):
        query.plan()


def test_the_first_batch_is_the_same_when_it_is_replayed() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.reader.initialOffset()
    kafka.grow(A0, 9)
    query.plan()
    first = query.ranges()
    kafka.grow(A0, 20)
    query.restart()
    assert query.ranges(0) == first == [OffsetRange(A0, 5, 9)]


def test_a_query_stopped_before_its_first_record_continues_at_its_start() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.plan()
    kafka.grow(A0, 8)
    query.restart()
    query.plan()
    assert query.ranges() == [OffsetRange(A0, 5, 8)]


def test_a_rate_limit_reads_in_steps() -> None:
    query = Query(Kafka(p0=(0, 300), p1=(0, 100)), startingOffsets="earliest", maxOffsetsPerTrigger="200")
    batches = []
    while query.plan():
        batches.append(query.ranges())
    assert batches == [
        [OffsetRange(A0, 0, 150), OffsetRange(A1, 0, 50)],
        [OffsetRange(A0, 150, 300), OffsetRange(A1, 50, 100)],
    ]


def test_a_trigger_for_all_available_records_ignores_the_rate_limit() -> None:
    query = Query(Kafka(p0=(0, 300)), startingOffsets="earliest", maxOffsetsPerTrigger="200")
    query.plan(ALL)
    assert query.ranges() == [OffsetRange(A0, 0, 300)]


def test_limits_are_reported_to_spark() -> None:
    assert Query(Kafka()).reader.getDefaultReadLimit() == ALL
    assert Query(Kafka(), maxOffsetsPerTrigger="7").reader.getDefaultReadLimit() == ReadMaxRows(7)
    assert Query(Kafka(), minOffsetsPerTrigger="3").reader.getDefaultReadLimit() == ReadMinRows(3)


def test_a_batch_waits_for_enough_offsets_but_not_longer_than_the_delay() -> None:
    kafka = Kafka(p0=(0, 0))
    query = Query(kafka, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="30s")
    query.plan()
    kafka.grow(A0, 4)
    assert not query.plan()
    query.clock.advance(31)
    assert query.plan()
    kafka.grow(A0, 13)
    assert not query.plan()
    kafka.grow(A0, 14)
    assert query.plan()
    assert query.ranges() == [OffsetRange(A0, 4, 14)]


def test_a_query_without_data_waits_for_records_after_a_few_empty_reads() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka, startingOffsets="earliest", idleWait="10s")
    assert query.plan()
    assert not any(query.plan() for _ in range(LOOKS))  # with these Spark closes windows
    assert query.clock.monotonic() == 0
    assert not query.plan()
    assert query.clock.monotonic() == 10
    query.to_come[14.0] = lambda: kafka.grow(A0, 7)
    assert query.plan()
    assert query.ranges() == [OffsetRange(A0, 5, 7)]
    assert query.clock.monotonic() == 14
    assert not any(query.plan() for _ in range(LOOKS))
    assert query.clock.monotonic() == 14


def test_a_query_without_idle_wait_with_records_left_or_with_an_end_does_not_wait() -> None:
    query = Query(Kafka(p0=(0, 5)), startingOffsets="earliest")
    held_back = Query(Kafka(p0=(0, 5)), startingOffsets="earliest", minOffsetsPerTrigger="10", idleWait="10s")
    once = Query(Kafka(p0=(0, 5)), startingOffsets="earliest", idleWait="10s")
    once.restart(available_now=True)
    for one in (query, held_back, once):
        one.plan()
        assert not any(one.plan() for _ in range(LOOKS + 2))
        assert one.clock.monotonic() == 0


def test_available_now_ends_at_the_records_present_at_its_start() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="3")
    query.restart(available_now=True)
    query.plan()
    kafka.grow(A0, 50)
    query.plan()
    assert [query.ranges(0), query.ranges(1)] == [[OffsetRange(A0, 0, 3)], [OffsetRange(A0, 3, 5)]]
    assert not query.plan()


def test_available_now_from_the_latest_offset_never_decreases() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.restart(available_now=True)
    kafka.grow(A0, 9)
    query.plan()
    assert query.ranges() == []
    assert not query.plan()


def test_a_partition_that_is_added_is_read_from_its_beginning() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.plan()
    kafka.offsets[A1] = (0, 3)
    query.plan()
    assert query.ranges() == [OffsetRange(A1, 0, 3)]
    kafka.offsets[A1] = (2, 3)
    query.restart()
    assert query.ranges(1) == [OffsetRange(A1, 0, 3)]


def test_the_tasks_of_a_replayed_batch_are_those_it_had() -> None:
    query = Query(Kafka(p0=(0, 100)), startingOffsets="earliest", minPartitions="4")
    query.plan()
    before = query.ranges()
    query.options["minPartitions"] = "2"
    query.restart()
    assert query.ranges(0) == before
    assert len(before) == 4


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ({"p0": (0, 5)}, "partition a-1 does not exist any more, and the query had read it up to offset 7"),
        ({"p0": (0, 2), "p1": (0, 7)}, "partition a-0 ends at offset 2, before offset 5, which is next"),
        ({"p0": (0, 5), "p1": (0, 7), "p2": (4, 9)}, "new partition a-2 starts at offset 4: earlier records"),
    ],
)
def test_lost_records_stop_a_query_with_an_error(after: dict[str, tuple[int, int]], sentence: str) -> None:
    kafka = Kafka(p0=(0, 5), p1=(0, 7))
    query = Query(kafka)
    query.plan()
    kafka.offsets = Kafka(**after).offsets
    with pytest.raises(
        DataLossError, match=f"records do not exist any more: {sentence}.* failOnDataLoss to false to continue"
    ):
        query.plan()


def test_a_query_that_accepts_losses_continues_with_the_remaining_records() -> None:
    kafka = Kafka(p0=(0, 5), p1=(0, 7))
    query = Query(kafka, failOnDataLoss="false")
    query.plan()
    kafka.offsets = Kafka(p1=(8, 12), p2=(4, 9)).offsets
    query.plan()
    assert query.ranges() == [OffsetRange(A1, 7, 12), OffsetRange(A2, 4, 9)]


def test_a_topic_that_was_made_again_stops_the_query_and_is_read_from_its_beginning_where_losses_are_accepted() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.plan()
    kafka.ids["a"] = "second"
    kafka.grow(A0, 30)
    with pytest.raises(
        DataLossError, match="topic a was deleted and created again; the query had read up to offset 5 of a"
    ):
        query.plan()
    query.options["failOnDataLoss"] = "false"
    query.restart()
    query.plan()
    assert [(part.start, part.end, part.topic_id) for part in query.ranges()] == [(0, 30, "second")]
    assert not query.plan()


def test_a_replayed_batch_is_of_the_topic_that_it_was_planned_for() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka, startingOffsets="earliest")
    query.plan()
    kafka.ids["a"] = "second"
    query.restart()
    assert [part.topic_id for part in query.ranges(0)] == ["first"]


def test_offsets_are_committed_to_a_group_once_after_they_were_read() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka, startingOffsets="earliest", commitOffsetsToGroup="watchers")
    query.plan()
    assert kafka.reported == []
    query.plan()
    query.plan()
    kafka.grow(A0, 9)
    query.plan()
    query.plan()
    assert kafka.reported == [{A0: 5}, {A0: 9}]


def test_a_group_that_refuses_stops_the_query_and_one_that_is_away_is_reported_later() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka, startingOffsets="earliest", commitOffsetsToGroup="watchers")
    query.plan()
    kafka.refusal = KafkaTimeoutError("no coordinator within 60 s")
    query.plan()
    kafka.refusal = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has members")
    with pytest.raises(OttlaError, match=r"commitOffsetsToGroup = watchers: .* choose a group without members"):
        query.plan()
    kafka.refusal = None
    query.plan()
    assert kafka.reported == [{A0: 5}]


def test_the_latest_offset_is_reported_for_the_query_s_progress() -> None:
    query = Query(Kafka(p0=(0, 500)), startingOffsets="earliest", maxOffsetsPerTrigger="5")
    assert query.reader.reportLatestOffset() is None
    query.plan()
    assert query.reader.reportLatestOffset() == {"a": {"0": 500}}


def test_stopping_closes_the_resources_of_the_driver() -> None:
    kafka = Kafka(p0=(0, 5))
    query = Query(kafka)
    query.plan()
    query.reader.stop()
    query.reader.stop()
    assert kafka.closed == 1
