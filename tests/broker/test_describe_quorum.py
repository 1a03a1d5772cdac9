"""DescribeQuorum: one voter that leads, and how far it has come."""

from __future__ import annotations

import uuid

import pytest

from ottla.broker.embedded import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from ottla.protocol.schema import ZERO_UUID
from tests.broker.wire import Wire


def asked(topic: str, index: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest([RequestTopicData(topic, [RequestPartitionData(index)])])


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.behaviour("B6")
def test_the_broker_is_the_only_voter_and_leads(wire: Wire, version: int) -> None:
    (partition,) = wire.ask(asked("__cluster_metadata"), version).topics[0].partitions
    (voter,) = partition.current_voters
    assert (partition.error_code, partition.leader_id, voter.replica_id) == (0, 1, 1)
    assert voter.log_end_offset == partition.high_watermark > 0
    assert not partition.observers


def test_who_asks_in_version_2_hears_of_its_directory_and_its_address(wire: Wire, broker: Broker) -> None:
    response = wire.ask(asked("__cluster_metadata"), 2)
    (node,) = response.nodes
    (listener,) = node.listeners
    assert (node.node_id, f"{listener.host}:{listener.port}") == (1, broker.bootstrap_servers)
    found: uuid.UUID = response.topics[0].partitions[0].current_voters[0].replica_directory_id
    assert found != ZERO_UUID


def test_what_is_decided_moves_the_high_watermark(wire: Wire) -> None:
    before = wire.ask(asked("__cluster_metadata")).topics[0].partitions[0].high_watermark
    wire.create("t")
    assert wire.ask(asked("__cluster_metadata")).topics[0].partitions[0].high_watermark == before + 2


@pytest.mark.parametrize(("topic", "index"), [("t", 0), ("__cluster_metadata", 1)])
def test_other_partitions_have_no_quorum(wire: Wire, topic: str, index: int) -> None:
    response = wire.ask(asked(topic, index), 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not response.nodes
