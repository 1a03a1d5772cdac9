"""Leaders propose ISRs, and get the new state or an error."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.cluster.topic import ANY_DIRECTORY
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    RequestTopicData,
)
from tests.coordination.controller.cluster import TOPIC, Cluster, directory


def alter(cluster: Cluster, broker: int, *isr: int, topic_id: UUID = TOPIC, **said: Any) -> PartitionData:
    """Propose an ISR with the current broker epochs."""
    state = cluster.partition()
    known = {"leader_epoch": state.leader_epoch, "partition_epoch": state.partition_epoch}
    states = [BrokerState(each, cluster.epoch(each)) for each in isr]
    partition = RequestPartitionData(**{"new_isr_with_epochs": states, **known, **said})
    request = AlterPartitionRequest(broker, cluster.epoch(broker), [RequestTopicData(topic_id, [partition])])
    return cluster.ask(request, AlterPartitionResponse).topics[0].partitions[0]


def three() -> Cluster:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2, 3))
    return cluster


def test_a_leader_removes_and_adds_a_follower_and_gets_the_new_partition_epoch() -> None:
    cluster = three()
    out = alter(cluster, 1, 1, 2)
    assert (out.error_code, out.leader_id, out.isr, out.leader_epoch, out.partition_epoch) == (0, 1, (1, 2), 0, 1)
    assert alter(cluster, 1, 1, 2, 3).isr == (1, 2, 3)
    assert cluster.led() == (1, (1, 2, 3))


def test_an_unchanged_isr_writes_nothing() -> None:
    cluster = three()
    written = len(cluster.log)
    assert alter(cluster, 1, 1, 2, 3).partition_epoch == 0
    assert len(cluster.log) == written


def test_a_request_of_an_older_version_has_no_broker_epochs() -> None:
    answer = alter(three(), 1, new_isr_with_epochs=(), new_isr=[1, 3])
    assert (answer.error_code, answer.isr) == (0, (1, 3))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 2}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 2}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 0, "partition_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"new_isr_with_epochs": [BrokerState(2), BrokerState(9)]}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": [BrokerState(2), BrokerState(2)]}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": [BrokerState(3)]}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": []}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": [BrokerState(2)], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": [BrokerState(2), BrokerState(1)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"new_isr_with_epochs": [BrokerState(2), BrokerState(3, 1)]}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_invalid_isr_change_is_rejected_with_its_error(said: dict[str, Any], error: ErrorCode) -> None:
    cluster = three()
    cluster.wait(1)
    cluster.beat(2), cluster.beat(3)
    cluster.wait(8.5)  # Broker 1 is fenced, and 2 leads in epoch 1.
    assert (cluster.led(), cluster.partition().leader_epoch) == ((2, (2, 3)), 1)
    assert alter(cluster, 2, 2, 3, **said).error_code == error
    assert cluster.partition().partition_epoch == 1


def test_of_several_errors_the_first_in_kafkas_order_is_returned() -> None:
    cluster = three()
    assert alter(cluster, 2, 9, leader_epoch=1).error_code == ErrorCode.NOT_CONTROLLER
    assert alter(cluster, 2, 9).error_code == ErrorCode.INVALID_REQUEST
    assert alter(cluster, 2, 9, topic_id=UUID(int=9), leader_epoch=1).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_broker_that_restarted_since_its_fetch_does_not_join_the_isr() -> None:
    cluster = three()
    alter(cluster, 1, 1, 2)
    before = cluster.epoch(3)
    cluster.stop_cleanly(3)
    cluster.join(3, start=2)
    empty = alter(cluster, 1, new_isr_with_epochs=[BrokerState(1), BrokerState(2), BrokerState(3, before)])
    assert empty.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert alter(cluster, 1, 1, 2, 3).error_code == 0


def test_a_leader_in_a_controlled_shutdown_removes_no_replica_from_the_isr() -> None:
    cluster = three()
    cluster.beat(3, want_shut_down=True)
    assert cluster.led() == (1, (1, 2))
    assert alter(cluster, 1, 1, 2, 3).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_request_with_another_broker_epoch_is_rejected_as_a_whole() -> None:
    cluster = three()
    answer = cluster.ask(AlterPartitionRequest(1, 1, []), AlterPartitionResponse)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("disks", "place"), [((301,), UUID(int=301)), ((301, 302), ANY_DIRECTORY)])
def test_a_replica_that_joins_the_isr_on_a_new_disk_can_lead_before_its_directory_is_reported(
    disks: tuple[int, ...], place: UUID
) -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    cluster.wait(8)
    cluster.beat(1)
    cluster.wait(2)
    cluster.join(2, start=2, log_dirs=[UUID(int=each) for each in disks])
    assert cluster.led() == (1, (1,))
    assert cluster.partition().directories == (directory(1), directory(2))
    assert alter(cluster, 1, 1, 2).isr == (1, 2)
    assert cluster.partition().directories == (directory(1), place)
    cluster.wait(8)
    cluster.beat(2)
    cluster.wait(4)
    assert cluster.led() == (2, (2,))
