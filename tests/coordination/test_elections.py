"""Partitions that a stopped Kafka left without a leader, and who leads them then."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.cluster.events import NodeStarted
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import PartitionState

ID = UUID(int=5)


def left_by_kafka(*changes: PartitionChangeRecord, replicas: tuple[int, ...] = (1,)) -> ClusterMetadata:
    """A topic of one partition, led by node 1 in epoch 4, and what happened to it."""
    machine = ClusterMetadata()
    machine.replay(TopicRecord("t", ID))
    machine.replay(PartitionRecord(0, ID, replicas, replicas, leader=1, leader_epoch=4, partition_epoch=9))
    for change in changes:
        machine.replay(change)
    machine.check()
    return machine


def state_after_a_start(machine: ClusterMetadata) -> PartitionState:
    for record in machine.decide(NodeStarted(7, 1), 0.0).records:
        machine.replay(record)
    machine.check()
    return machine.topics["t"].partitions[0]


def test_a_partition_that_is_led_stays_as_it_is() -> None:
    machine = left_by_kafka()
    assert machine.decide(NodeStarted(7, 1), 0.0).records == ()
    assert state_after_a_start(machine).leader_epoch == 4


@pytest.mark.parametrize(
    "change",
    [
        PartitionChangeRecord(0, ID, leader=-1),
        PartitionChangeRecord(0, ID, leader=-1, isr=(), eligible_leader_replicas=(1,)),
    ],
)
def test_a_partition_without_leader_gets_one_in_a_new_epoch(change: PartitionChangeRecord) -> None:
    state = state_after_a_start(left_by_kafka(change))
    assert (state.leader, state.leader_epoch, state.isr, state.elr) == (1, 6, (1,), ())
    assert state.partition_epoch == 9 + 2


def test_whoever_may_lead_without_being_in_sync_is_forgotten_with_the_election_and_only_then() -> None:
    lost = PartitionChangeRecord(0, ID, leader=-1, isr=(), eligible_leader_replicas=(1,), last_known_elr=(2,))
    assert state_after_a_start(left_by_kafka(lost, replicas=(1, 2))).last_known_elr == ()
    stopped = PartitionChangeRecord(0, ID, leader=-1, last_known_elr=(2,))
    assert state_after_a_start(left_by_kafka(stopped, replicas=(1, 2))).last_known_elr == (2,)


def test_a_partition_whose_copies_are_elsewhere_is_not_led_here() -> None:
    machine = left_by_kafka(PartitionChangeRecord(0, ID, leader=-1, isr=(2,)), replicas=(1, 2))
    assert state_after_a_start(machine).leader == -1


def test_a_leader_that_is_named_anew_begins_an_epoch_and_a_change_of_copies_does_not() -> None:
    machine = left_by_kafka(
        PartitionChangeRecord(0, ID, leader=1), PartitionChangeRecord(0, ID, replicas=(1, 2), isr=(1, 2))
    )
    state = machine.topics["t"].partitions[0]
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (1, 5, (1, 2), (1, 2))
