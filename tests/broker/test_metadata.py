"""Metadata: topics by name, by id and all; made on demand; at the address by which the client came."""

from __future__ import annotations

import uuid

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.wire import Wire


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_described_in_every_version(wire: Wire, broker: Broker, version: int) -> None:
    wire.create("flights", partitions=3)
    response = wire.ask(MetadataRequest(named("flights")), version)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, host, int(port))]
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "flights", False)
    assert [(p.partition_index, p.leader_id, list(p.isr_nodes)) for p in topic.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
        (2, 1, [1]),
    ]


def test_all_topics_are_returned_for_null_and_in_version_0_for_an_empty_list(wire: Wire) -> None:
    wire.create("a")
    wire.create("b")
    assert [topic.name for topic in wire.ask(MetadataRequest(None), 12).topics] == ["a", "b"]
    assert [topic.name for topic in wire.ask(MetadataRequest([]), 0).topics] == ["a", "b"]
    assert wire.ask(MetadataRequest([]), 1).topics == []


def test_a_topic_is_found_by_its_id_and_an_unknown_id_is_an_error(wire: Wire) -> None:
    wire.create("a")
    topic_id = wire.metadata("a").topics[0].topic_id
    unknown = uuid.UUID(int=7)
    response = wire.ask(
        MetadataRequest([MetadataRequestTopic(topic_id, None), MetadataRequestTopic(unknown, None)]), 12
    )
    assert [(t.error_code, t.name, t.topic_id) for t in response.topics] == [
        (0, "a", topic_id),
        (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown),
    ]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_rejected_in_versions_without_ids(wire: Wire, version: int) -> None:
    wire.create("a")
    topic_id = wire.metadata("a").topics[0].topic_id
    asked = [MetadataRequestTopic(topic_id, "a"), *named("a")]
    assert [topic.error_code for topic in wire.ask(MetadataRequest(asked), version).topics] == [42, 42]
    assert [topic.error_code for topic in wire.ask(MetadataRequest(named("a")), version).topics] == [0]


def test_a_topic_that_is_named_twice_is_described_once(wire: Wire) -> None:
    wire.create("a")
    topic_id = wire.metadata("a").topics[0].topic_id
    by_id = [MetadataRequestTopic(topic_id, None)] * 2
    assert len(wire.ask(MetadataRequest(by_id), 12).topics) == 1
    described = wire.metadata("b", "a", "b").topics
    assert [(topic.name, topic.error_code) for topic in described] == [("b", 3), ("a", 0)]


def test_a_missing_topic_is_created_if_client_and_broker_allow_it(wire: Wire) -> None:
    (topic,) = wire.ask(MetadataRequest(named("new")), 9).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert wire.produce("new", b"x").error_code == 0


def test_a_missing_topic_is_not_created_if_the_client_forbids_it(wire: Wire) -> None:
    (topic,) = wire.ask(MetadataRequest(named("new"), allow_auto_topic_creation=False), 9).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.ask(MetadataRequest(None)).topics == []


def test_a_missing_topic_is_not_created_if_the_broker_forbids_it() -> None:
    with Broker(auto_create_topics_enable=False) as broker, Wire(broker.bootstrap_servers) as wire:
        (topic,) = wire.ask(MetadataRequest(named("new")), 9).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 250, "__cluster_metadata"])
def test_an_invalid_topic_name_is_rejected(wire: Wire, name: str) -> None:
    (topic,) = wire.ask(MetadataRequest(named(name)), 9).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_client_gets_the_address_it_connected_to() -> None:
    with Broker(listen="0.0.0.0:0") as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        with Wire(f"127.0.0.2:{port}") as wire:
            assert wire.metadata().brokers[0].host == "127.0.0.2"


def test_an_advertised_address_is_returned_to_every_client() -> None:
    with Broker(advertised_listeners="kafka.example:1234") as broker, Wire(broker.bootstrap_servers) as wire:
        (node,) = wire.metadata().brokers
        assert (node.host, node.port) == ("kafka.example", 1234)


def test_authorized_operations_are_returned_if_requested(wire: Wire) -> None:
    wire.create("a")
    request = MetadataRequest(
        named("a"), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    response = wire.ask(request, 8)
    assert response.cluster_authorized_operations > 0
    assert response.topics[0].topic_authorized_operations > 0
    assert wire.ask(MetadataRequest(named("a")), 8).topics[0].topic_authorized_operations < 0
