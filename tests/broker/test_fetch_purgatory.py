"""The waiting fetches and the timers, without sockets or clocks."""

from __future__ import annotations

import uuid

from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.model import TopicPartition
from ottla.storage.log import Log


def no_log(partition: TopicPartition, topic_id: uuid.UUID) -> Log:
    raise AssertionError("nobody reads here")


def partition(index: int = 0) -> Partition:
    return Partition(TopicPartition("t", index), uuid.UUID(int=1), no_log, leader_epoch=0)


class Story:
    """Fetches by name, and the names of those that were completed."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.waiting = FetchPurgatory(self.timers)
        self.completed: list[str] = []

    def wait(self, name: str, missing: int, *partitions: Partition, until: float = 10.0) -> WaitingFetch:
        fetch = WaitingFetch(partitions, missing, lambda: self.completed.append(name))
        self.waiting.add(fetch, until)
        return fetch


def test_a_fetch_is_completed_by_the_append_that_reaches_its_minimum_bytes() -> None:
    story, p = Story(), partition()
    story.wait("small", 10, p)
    story.wait("large", 100, p)
    story.waiting.handle_append(p, 60)
    story.waiting.run_due()
    assert story.completed == ["small"]
    story.waiting.handle_append(p, 60)
    story.waiting.run_due()
    assert story.completed == ["small", "large"]
    assert not p.waiting


def test_the_bytes_of_several_partitions_are_added_up() -> None:
    story, p, q = Story(), partition(0), partition(1)
    story.wait("both", 100, p, q)
    story.waiting.handle_append(p, 50)
    story.waiting.handle_append(q, 50)
    story.waiting.run_due()
    assert story.completed == ["both"]
    assert not p.waiting
    assert not q.waiting


def test_a_fetch_is_completed_once_by_an_append_or_its_deadline() -> None:
    story, p = Story(), partition()
    story.wait("a", 1, p, until=5.0)
    story.waiting.handle_append(p, 1)
    story.timers.run(5.0)
    story.waiting.run_due()
    story.timers.run(9.0)
    assert story.completed == ["a"]


def test_a_deadline_completes_a_fetch_without_appends() -> None:
    story, p = Story(), partition()
    story.wait("a", 1, p, until=5.0)
    story.timers.run(4.9)
    assert story.completed == []
    story.timers.run(5.0)
    assert story.completed == ["a"]


def test_the_fetch_of_a_disconnected_client_is_removed() -> None:
    story, p = Story(), partition()
    story.waiting.discard(story.wait("a", 1, p))
    story.waiting.handle_append(p, 1)
    story.waiting.run_due()
    story.timers.run(100.0)
    assert story.completed == []
    assert not p.waiting


def test_the_removal_of_a_partition_completes_its_fetches() -> None:
    story, p = Story(), partition()
    story.wait("a", 1000, p)
    story.waiting.recheck([p])
    story.waiting.run_due()
    assert story.completed == ["a"]


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    timers, rung = Timers(), list[int]()
    for deadline in (3, 1, 2):
        timers.schedule(deadline, lambda deadline=deadline: rung.append(deadline))  # type: ignore[misc]
    assert timers.time_until_next(0.5) == 0.5
    timers.run(2.0)
    assert rung == [1, 2]
    timers.run(3.0)
    assert rung == [1, 2, 3]
    assert timers.time_until_next(3.0) is None


def test_a_timer_set_for_now_by_another_fires_in_the_next_turn() -> None:
    timers, rung = Timers(), list[str]()

    def ring() -> None:
        rung.append("a")
        timers.schedule(1.0, lambda: rung.append("b"))

    timers.schedule(1.0, ring)
    timers.run(1.0)
    assert rung == ["a"]
    assert timers.time_until_next(1.0) == 0.0
    timers.run(1.0)
    assert rung == ["a", "b"]


def test_cancelled_timers_do_not_fire_and_do_not_accumulate() -> None:
    timers, rung = Timers(), list[int]()
    kept = timers.schedule(500_000.0, lambda: rung.append(1))
    for moment in range(10_000):
        timers.cancel(timers.schedule(1000.0 + moment, lambda: rung.append(0)))
    assert len(timers) == 1
    assert len(timers._heap) < 200
    timers.run(499_999.0)
    assert rung == []
    timers.run(500_000.0)
    assert rung == [1]
    timers.cancel(kept)
    assert len(timers) == 0
