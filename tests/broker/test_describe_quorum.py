"""DescribeQuorum: one voter that leads, and its progress."""

from __future__ import annotations

import uuid

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from ottla.protocol.schema import ZERO_UUID
from tests.broker.wire import Wire


def quorum_request(topic: str, index: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest([RequestTopicData(topic, [RequestPartitionData(index)])])


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.behaviour("B6")
def test_the_broker_is_the_only_voter_and_the_leader(wire: Wire, version: int) -> None:
    (partition,) = wire.ask(quorum_request("__cluster_metadata"), version).topics[0].partitions
    (voter,) = partition.current_voters
    assert (partition.error_code, partition.leader_id, voter.replica_id) == (0, 1, 1)
    assert voter.log_end_offset == partition.high_watermark > 0
    assert not partition.observers


def test_version_2_has_the_directory_of_the_voter_and_no_controller_listener(wire: Wire) -> None:
    response = wire.ask(quorum_request("__cluster_metadata"), 2)
    (node,) = response.nodes
    assert (node.node_id, list(node.listeners)) == (1, [])
    found: uuid.UUID = response.topics[0].partitions[0].current_voters[0].replica_directory_id
    assert found != ZERO_UUID


def test_a_decision_advances_the_high_watermark(wire: Wire) -> None:
    before = wire.ask(quorum_request("__cluster_metadata")).topics[0].partitions[0].high_watermark
    wire.create("t")
    assert wire.ask(quorum_request("__cluster_metadata")).topics[0].partitions[0].high_watermark == before + 2


@pytest.mark.parametrize(("topic", "index"), [("t", 0), ("__cluster_metadata", 1)])
def test_other_partitions_have_no_quorum(wire: Wire, topic: str, index: int) -> None:
    response = wire.ask(quorum_request(topic, index), 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not response.nodes
