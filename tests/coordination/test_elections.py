"""Partitions that a stopped Kafka left without a leader, and their new leaders, when a node without other nodes starts."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.cluster.features import BROKER_LEVELS
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import Controller
from ottla.coordination.controller.events import ControllerActivated, ControllerRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.protocol.schema import Message

ID, DISK = UUID(int=5), UUID(int=300)


def left_by_kafka(*changes: PartitionChangeRecord, replicas: tuple[int, ...] = (1,)) -> ClusterMetadata:
    """A topic of one partition, led by node 1 in epoch 4, and what happened to it."""
    machine = ClusterMetadata()
    machine.replay(TopicRecord("t", ID))
    machine.replay(PartitionRecord(0, ID, replicas, replicas, leader=1, leader_epoch=4, partition_epoch=9))
    for change in changes:
        machine.replay(change)
    machine.check()
    return machine


def changes_at_a_start(machine: ClusterMetadata) -> list[Message]:
    """Register broker 1 with the controller in its process; return what that changes in partitions."""
    controller = Controller(ControllerConfig("c", own_broker=1), machine, 10)
    request = BrokerRegistrationRequest(
        1,
        "c",
        UUID(int=8),
        features=[Feature(name, *levels) for name, levels in BROKER_LEVELS.items()],
        log_dirs=[DISK],
    )
    written: list[Message] = []
    for event in (ControllerActivated(), ControllerRequest(1, request)):
        records = [each for each in controller.decide(event, 0.0).records if isinstance(each, Message)]
        for record in records:
            controller.replay(record)
        written += records
    machine.check()
    return [each for each in written if isinstance(each, PartitionChangeRecord)]


def state_after_a_start(machine: ClusterMetadata) -> PartitionState:
    changes_at_a_start(machine)
    return machine.topics["t"].partitions[0]


def test_a_partition_that_is_led_stays_as_it_is() -> None:
    machine = left_by_kafka()
    assert changes_at_a_start(machine) == []
    assert machine.topics["t"].partitions[0].leader_epoch == 4


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


def test_eligible_leader_replicas_are_cleared_only_by_the_election() -> None:
    lost = PartitionChangeRecord(0, ID, leader=-1, isr=(), eligible_leader_replicas=(1,), last_known_elr=(2,))
    state = state_after_a_start(left_by_kafka(lost, replicas=(1, 2)))
    assert (state.leader, state.elr, state.last_known_elr) == (1, (), (2,))
    stopped = PartitionChangeRecord(0, ID, leader=-1, last_known_elr=(2,))
    assert state_after_a_start(left_by_kafka(stopped, replicas=(1, 2))).last_known_elr == ()


def test_a_partition_with_replicas_elsewhere_is_not_led_here() -> None:
    machine = left_by_kafka(PartitionChangeRecord(0, ID, leader=-1, isr=(2,)), replicas=(1, 2))
    assert state_after_a_start(machine).leader == -1


def test_a_new_leader_starts_an_epoch_and_a_replica_change_does_not() -> None:
    machine = left_by_kafka(
        PartitionChangeRecord(0, ID, leader=1), PartitionChangeRecord(0, ID, replicas=(1, 2), isr=(1, 2))
    )
    state = machine.topics["t"].partitions[0]
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (1, 5, (1, 2), (1, 2))
