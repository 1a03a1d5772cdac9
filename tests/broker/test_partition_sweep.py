"""Chores over many partitions."""

from __future__ import annotations

import uuid

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partition_sweep import PAUSE_SECONDS, PartitionSweep
from ottla.clock import ManualClock
from ottla.model import TopicPartition
from ottla.storage.log import Log


def no_log(topic_partition: TopicPartition, topic_id: uuid.UUID) -> Log:
    raise AssertionError


PARTITIONS = [Partition(TopicPartition("t", n), uuid.UUID(int=1), no_log, leader_epoch=0) for n in range(10)]


class Chore:
    """Takes a millisecond for each partition."""

    def __init__(self) -> None:
        self.clock, self.timers = ManualClock(), Timers()
        self.done: list[Partition] = []
        self.sweep = PartitionSweep(self.timers, self.clock, self)

    def __call__(self, partition: Partition) -> None:
        self.done.append(partition)
        self.clock.advance(0.001)


def test_a_sweep_pauses_after_a_time_slice_and_continues() -> None:
    chore = Chore()
    chore.sweep.start(PARTITIONS)
    assert chore.done == PARTITIONS[:2]
    chore.timers.run(chore.clock.monotonic())
    assert chore.done == PARTITIONS[:2]
    while (patience := chore.timers.time_until_next(chore.clock.monotonic())) is not None:
        assert patience == pytest.approx(PAUSE_SECONDS)
        chore.clock.advance(patience)
        chore.timers.run(chore.clock.monotonic() + 1e-9)
    assert chore.done == PARTITIONS


def test_a_second_sweep_starts_after_the_first_has_ended() -> None:
    chore = Chore()
    chore.sweep.start(PARTITIONS[:3])
    chore.sweep.start(PARTITIONS)
    chore.clock.advance(1)
    chore.timers.run(chore.clock.monotonic())
    assert chore.done == PARTITIONS[:3]
    chore.sweep.start(PARTITIONS[3:4])
    assert chore.done == PARTITIONS[:4]


def test_a_sweep_continues_after_a_task_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    done: list[Partition] = []

    def chore(partition: Partition) -> None:
        done.append(partition)
        if partition is PARTITIONS[1]:
            raise KeyError("t")

    sweep = PartitionSweep(Timers(), ManualClock(), chore)
    sweep.start(PARTITIONS)
    sweep.start(PARTITIONS[:1])
    assert done == [*PARTITIONS, PARTITIONS[0]]
    assert "partition=t-1" in caplog.text
