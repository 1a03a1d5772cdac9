from __future__ import annotations

import gc
from random import Random
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.client.producer.buffer_pool import BufferPool
from ottla.client.producer.events import BatchBegun
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.partitioner import StickyPartitioner
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import ManualClock
from ottla.errors import IllegalStateError
from ottla.model import Node, PartitionInfo, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.trace import EventStream

EVERYTHING = 1_000_000
BATCH = 1000
LINGER = 0.005


class NoJitter(Random):
    def uniform(self, a: float, b: float) -> float:
        return 1.0


def cluster(leaders: dict[int, int], topic: str = "t") -> MetadataSnapshot:
    """A topic with these nodes as leaders (-1: none)."""
    parts = tuple(PartitionInfo(topic, p, leader, 0, (), ()) for p, leader in leaders.items())
    nodes = {n: Node(n, "h", n) for n in leaders.values() if n >= 0}
    return MetadataSnapshot(nodes=nodes, topics={topic: KnownTopic(topic, UUID(int=0), False, parts)})


ONE = cluster({0: 1})


class Story:
    """An accumulator on a manual clock."""

    def __init__(self, *, buffer_memory: int = 100_000, codec: Codec = Codec.NONE, **settings: Any) -> None:
        self.clock = ManualClock()
        self.pool = BufferPool(buffer_memory)
        self.accumulator = RecordAccumulator(
            **{
                "batch_size": BATCH,
                "linger_ms": LINGER * 1000,
                "delivery_timeout_ms": 120_000,
                "retry_backoff": ExponentialBackoff(100, 1000, NoJitter()),
                "pool": self.pool,
                "make_builder": lambda max_bytes: BatchBuilder(codec, None, max_bytes),
                "make_sticky": lambda: StickyPartitioner(BATCH, Random(1)),
                "monotonic": self.clock.monotonic,
                **settings,
            }
        )

    def append(self, size: int = 100, partition: int = 0, partitions: int = 1) -> RecordFuture:
        future = self.accumulator.append("t", partition, partitions, 1, None, bytes(size), ())
        assert future is not None
        return future

    def ready(self, known: MetadataSnapshot = ONE) -> set[int]:
        return self.accumulator.ready(known, self.clock.monotonic()).nodes

    def drain(self, known: MetadataSnapshot = ONE, most: int = EVERYTHING) -> list[Any]:
        now = self.clock.monotonic()
        drained = [b for batches in self.accumulator.drain(known, {1, 2}, most, now).values() for b in batches]
        for batch in drained:
            batch.close()
        return drained


@pytest.mark.behaviour("P2")
def test_a_batch_waits_for_more_records_until_its_linger_time() -> None:
    story = Story()
    story.clock.advance(0.25)
    story.append()
    check = story.accumulator.ready(ONE, story.clock.monotonic())
    assert check.nodes == set()
    assert check.next_check == pytest.approx(LINGER)
    story.clock.advance(LINGER)
    assert story.ready() == {1}


@pytest.mark.behaviour("P2")
def test_a_full_batch_does_not_wait() -> None:
    story = Story()
    for _ in range(10):
        story.append()
    assert story.ready() == {1}
    batch = story.drain()[0]
    assert len(batch.payload) <= BATCH
    assert batch.count == 8


@pytest.mark.behaviour("P2")
def test_a_record_larger_than_a_batch_gets_its_own_batch() -> None:
    story = Story()
    story.append(10)
    story.append(5000)
    story.append(10)
    assert [batch.count for _ in range(3) for batch in story.drain()] == [1, 1, 1]


def test_the_sender_is_woken_only_when_a_batch_is_created() -> None:
    story, woken = Story(), []
    story.accumulator.set_waker(lambda: woken.append("once"))
    for _ in range(2):
        story.append()
    assert woken == ["once"]


def test_no_record_is_added_to_a_drained_batch() -> None:
    story = Story()
    story.append()
    story.clock.advance(LINGER)
    taken = story.accumulator.drain(ONE, {1}, EVERYTHING, story.clock.monotonic())[1]
    story.append()
    assert [batch.count for batch in taken] == [1]


@pytest.mark.behaviour("P2")
def test_memory_is_allocated_for_each_batch_and_released_at_its_end() -> None:
    story = Story(buffer_memory=2 * BATCH)
    pool = story.pool
    story.append(partition=0)
    story.append(partition=0)
    assert pool.available_bytes == BATCH
    story.append(partition=1)
    assert story.accumulator.append("t", 2, 3, 1, None, b"v", ()) is None
    for batch in story.drain(cluster({0: 1, 1: 1})):
        batch.result.complete(base_offset=0)
        story.accumulator.finish(batch)
    assert pool.available_bytes == 2 * BATCH
    story.append(partition=2)


def test_all_batches_are_due_when_memory_is_short() -> None:
    story = Story()
    story.append()
    story.pool.claim(EVERYTHING)
    assert story.ready() == {1}


def test_a_leader_gets_one_batch_of_each_of_its_partitions() -> None:
    story = Story()
    for partition in (0, 1, 2):
        for _ in range(20):
            story.append(partition=partition)
    known = cluster({0: 1, 1: 1, 2: 2})
    assert story.ready(known) == {1, 2}
    drained = story.accumulator.drain(known, {1}, EVERYTHING, 0)
    assert {node: [b.tp.partition for b in batches] for node, batches in drained.items()} == {1: [0, 1]}


def test_a_request_stays_within_its_limit_and_no_partition_starves() -> None:
    story = Story()
    for partition in range(5):
        for _ in range(40):
            story.append(partition=partition)
    known = cluster(dict.fromkeys(range(5), 1))
    turns = [[b.tp.partition for b in story.drain(known, 2 * BATCH)] for _ in range(4)]
    assert turns == [[0, 1], [2, 3], [4, 0], [1, 2]]


def test_a_request_may_be_exactly_as_large_as_allowed() -> None:
    story = Story()
    for partition in range(3):
        story.append(partition=partition)
    story.clock.advance(LINGER)
    known = cluster(dict.fromkeys(range(3), 1))
    [size] = {batch.size_bytes for batch in story.drain(known)}
    for partition in range(3):
        story.append(partition=partition)
    story.clock.advance(LINGER)
    assert len(story.drain(known, 2 * size)) == 2


def test_a_batch_larger_than_a_request_is_sent_alone() -> None:
    story = Story()
    story.append(5000)
    assert len(story.drain(most=100)) == 1


def test_a_topic_without_a_leader_is_reported() -> None:
    story = Story()
    story.append()
    check = story.accumulator.ready(cluster({0: -1}), 10)
    assert {tp.topic for tp in check.leaderless_partitions} == {"t"}
    assert check.nodes == set()


@pytest.mark.behaviour("P4")
def test_a_retried_batch_is_sent_first_and_after_its_backoff() -> None:
    story = Story()
    for _ in range(10):
        story.append()
    batch = story.drain()[0]
    story.accumulator.reenqueue(batch, story.clock.monotonic())
    check = story.accumulator.ready(ONE, story.clock.monotonic())
    assert check.nodes == set()
    assert check.next_check == pytest.approx(0.1)
    story.clock.advance(0.1)
    assert story.drain() == [batch]
    story.accumulator.reenqueue(batch, story.clock.monotonic())
    assert story.accumulator.ready(ONE, story.clock.monotonic()).next_check == pytest.approx(0.2)


def test_a_batch_in_retry_backoff_delays_only_its_own_partition() -> None:
    story = Story()
    known = cluster({0: 1, 1: 1})
    story.append(partition=0)
    (waiting,) = story.drain(known)
    story.accumulator.reenqueue(waiting, story.clock.monotonic())
    story.append(partition=0)
    story.append(partition=1)
    assert [batch.tp.partition for batch in story.drain(known)] == [1]
    story.clock.advance(0.1)
    assert story.drain(known) == [waiting]


def test_batches_that_fail_together_keep_their_order() -> None:
    story = Story()
    for _ in range(24):
        story.append()
    first, second = story.drain()[0], story.drain()[0]
    story.accumulator.reenqueue(first, 0)
    story.accumulator.reenqueue(second, 0)
    story.clock.advance(1)
    assert [story.drain()[0] for _ in range(2)] == [first, second]


@pytest.mark.behaviour("P4")
def test_a_batch_expires_at_its_delivery_timeout() -> None:
    story = Story(delivery_timeout_ms=10_000)
    story.append()
    story.clock.advance(9.9)
    assert story.accumulator.expired_batches(story.clock.monotonic()) == []
    story.clock.advance(0.1)
    assert [b.count for b in story.accumulator.expired_batches(story.clock.monotonic())] == [1]
    assert story.drain() == []


@pytest.mark.behaviour("P4")
def test_the_earliest_expiry_of_queued_batches_is_known() -> None:
    story = Story(delivery_timeout_ms=10_000)
    story.clock.advance(5)
    story.append(partition=0)
    story.clock.advance(1)
    story.append(partition=1)
    assert story.accumulator.next_expiry() == 15


def test_a_muted_partition_keeps_its_order() -> None:
    story = Story()
    story.append()
    tp = TopicPartition("t", 0)
    story.accumulator.mute(tp)
    story.clock.advance(1)
    assert story.ready() == set()
    assert story.drain() == []
    story.accumulator.unmute(tp)
    assert len(story.drain()) == 1


@pytest.mark.behaviour("P8")
def test_records_without_a_key_fill_one_partitions_batch_and_then_anothers() -> None:
    story = Story()
    known = cluster(dict.fromkeys(range(10), 1))
    for _ in range(80):
        story.append(partition=-1, partitions=10)
    drained = []
    while batches := story.drain(known):
        drained += batches
    assert sum(b.count for b in drained) == 80
    assert all(b.count == 8 for b in drained[:-1]), "every batch but the last is full"
    assert len({b.tp.partition for b in drained}) > 3


def test_a_flush_makes_everything_due_and_waits_for_it() -> None:
    story = Story()
    story.append()
    mark = story.accumulator.flush_mark()
    story.accumulator.begin_flush()
    assert story.ready() == {1}
    assert story.accumulator.is_flushed(mark) is False
    batch = story.drain()[0]
    batch.result.complete(base_offset=0)
    story.accumulator.finish(batch)
    assert story.accumulator.is_flushed(mark) is True
    story.accumulator.end_flush()
    story.append()
    assert story.ready() == set()


def test_a_flush_does_not_wait_for_later_records() -> None:
    story = Story()
    story.append(partition=0)
    story.append(partition=1)
    batches = story.drain(cluster({0: 1, 1: 1}))
    last = story.accumulator.flush_mark() - 1
    batches[0].result.complete(base_offset=0)
    story.accumulator.finish(batches[0])
    assert story.accumulator.is_flushed(last)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_rejected_as_too_large_is_split_into_two_with_the_same_records(codec: Codec) -> None:
    story = Story(codec=codec, batch_size=10_000)
    futures = [story.append() for _ in range(9)]
    batch = story.drain()[0]
    before = story.pool.available_bytes
    story.accumulator.split_and_reenqueue(batch)
    story.accumulator.finish(batch)
    assert not [each for each in gc.get_referrers(batch) if isinstance(each, dict | list)], "its memory can go"
    assert story.pool.available_bytes == before
    parts = [part for _ in range(2) for part in story.drain()]
    story.accumulator.reenqueue(parts[1], 0)
    story.accumulator.reenqueue(parts[0], 0)
    story.clock.advance(1)
    assert [part for _ in range(2) for part in story.drain()] == parts
    assert [part.count for part in parts] == [4, 5]
    for part, base in zip(parts, (10, 14), strict=True):
        part.result.complete(base_offset=base)
        story.accumulator.finish(part)
    assert [future.result(0).offset for future in futures] == list(range(10, 19))
    assert story.accumulator.incomplete() == []
    assert story.pool.available_bytes == 100_000


def test_a_closed_accumulator_accepts_no_records_and_all_batches_are_due() -> None:
    story = Story()
    story.append()
    story.accumulator.close()
    assert story.ready() == {1}
    with pytest.raises(IllegalStateError, match="closed"):
        story.append()
    free = story.pool.available_bytes
    with pytest.raises(IllegalStateError, match="closed"):
        story.accumulator.append_batch(TopicPartition("t", 0), b"x" * 100, 1)
    assert story.pool.available_bytes == free


def test_whole_batches_are_placed_on_one_partition_after_another() -> None:
    story = Story()
    chosen = [story.accumulator.sticky_partition("t", 50, BATCH // 2) for _ in range(20)]
    assert chosen[::2] == chosen[1::2]
    assert len(set(chosen)) > 5


def test_creating_a_batch_is_traced() -> None:
    events = EventStream()
    story = Story(events=events)
    with events.trace() as trace:
        story.append()
        story.append()
    assert [moment.event for moment in trace] == [BatchBegun(TopicPartition("t", 0))]


def racks(leaders: dict[int, int], of: dict[int, str]) -> MetadataSnapshot:
    """A topic with these leaders, on brokers in these racks."""
    known = cluster(leaders)
    return structs.replace(known, nodes={n: Node(n, "h", 9092, of.get(n)) for n in known.nodes.keys() | of.keys()})


def appended_to(story: Story, known: MetadataSnapshot, partitions: int) -> set[int]:
    """The partitions that get records without a key."""
    story.ready(known)
    for _ in range(100):
        story.append(partition=-1, partitions=partitions)
        story.ready(known)
    return {batch.tp.partition for _ in range(100) for batch in story.drain(known)}


@pytest.mark.parametrize("adaptive", [True, False])
def test_records_without_a_key_prefer_leaders_in_the_rack_of_the_producer(adaptive: bool) -> None:
    known = racks({0: 1, 1: 2, 2: 1, 3: 2}, {1: "here", 2: "there"})
    story = Story(rack="here", adaptive=adaptive, cluster=lambda: known)

    assert appended_to(story, known, 4) == {0, 2}


def test_records_without_a_key_are_sent_to_any_partition_if_no_leader_is_in_the_rack_of_the_producer() -> None:
    known = racks({0: 1, 1: 2}, {1: "here", 2: "there"})
    story = Story(rack="nowhere", cluster=lambda: known)

    assert appended_to(story, known, 2) == {0, 1}


def test_an_incremental_batch_reserves_memory_as_it_grows() -> None:
    story = Story(buffer_memory=10_000, chunk_bytes=400)

    story.append(100)
    first = story.pool.available_bytes
    for _ in range(3):
        story.append(100)
    second = story.pool.available_bytes
    for _ in range(20):
        story.append(100)

    assert (first, second) == (9_600, 9_200)
    assert story.pool.available_bytes >= 10_000 - 3 * BATCH
    for batch in [batch for _ in range(5) for batch in story.drain()]:
        story.accumulator.finish(batch)
    assert story.pool.available_bytes == 10_000


def test_an_incremental_batch_is_closed_if_there_is_no_memory_for_the_next_chunk() -> None:
    story = Story(buffer_memory=400, chunk_bytes=400)
    story.append(100)
    story.append(100)

    assert story.accumulator.append("t", 0, 1, 1, None, bytes(100), ()) is None
    assert story.ready() == {1}, "a full batch is due at once"
    assert [batch.count for batch in story.drain()] == [2]


def test_a_record_larger_than_a_batch_is_reserved_as_a_whole() -> None:
    story = Story(buffer_memory=10_000, chunk_bytes=400)
    story.append(5_000)
    assert story.pool.available_bytes < 5_000
