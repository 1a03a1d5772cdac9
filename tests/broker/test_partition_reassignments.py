"""AlterPartitionReassignments and ListPartitionReassignments: there is nowhere to move to."""

from __future__ import annotations

import kafka
import kafka.admin
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.wire import Wire


def move(wire: Wire, replicas: list[int] | None, index: int = 0, version: int = 1) -> ReassignablePartitionResponse:
    topic = ReassignableTopic("t", [ReassignablePartition(index, replicas)])
    response = wire.ask(AlterPartitionReassignmentsRequest(topics=[topic]), version)
    assert response.error_code == 0
    result: ReassignablePartitionResponse = response.responses[0].partitions[0]
    return result


@pytest.mark.parametrize("version", range(2))
def test_a_partition_may_be_reassigned_to_its_present_broker(wire: Wire, version: int) -> None:
    wire.create("t")
    assert move(wire, [1], version=version) == ReassignablePartitionResponse(0, 0, None)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([2], "broker 2, and there is none of that number"),
        ([], "a partition is assigned to no broker"),
        ([1, 1], "names a broker twice"),
        ([-1], "broker -1, and there is none of that number"),
    ],
)
def test_a_partition_cannot_be_reassigned_to_another_broker(wire: Wire, replicas: list[int], message: str) -> None:
    wire.create("t")
    result = move(wire, replicas)
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message in str(result.error_message)


def test_without_a_reassignment_there_is_nothing_to_cancel(wire: Wire) -> None:
    wire.create("t")
    assert move(wire, None).error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert move(wire, [1], index=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = wire.ask(ListPartitionReassignmentsRequest())
    assert (response.error_code, response.topics) == (0, [])


def test_kafka_pythons_admin_client_gets_the_same_errors(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    partition = kafka.TopicPartition("t", 0)
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    moving, accepted = admin.list_partition_reassignments(), admin.alter_partition_reassignments({partition: [1]})
    admin.close()
    assert (moving, accepted) == ({}, {partition: None})
