"""CreatePartitions: new partitions can be used as soon as they are acknowledged."""

from __future__ import annotations

from pathlib import Path

import kafka
import kafka.admin
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.broker.wire import Wire, batch, fetch, produce, values


def grow(wire: Wire, name: str, count: int, version: int = 3, *, validate_only: bool = False) -> int:
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count)], 1000, validate_only)
    (result,) = wire.ask(request, version).results
    assert result.name == name
    return int(result.error_code)


@pytest.mark.behaviour("B8")
@pytest.mark.parametrize("version", range(4))
def test_a_new_partition_serves_produce_and_fetch_at_once(wire: Wire, version: int) -> None:
    wire.create("t")
    assert wire.produce("t", b"old").base_offset == 0
    assert grow(wire, "t", 3, version) == 0
    assert wire.produce("t", b"new", partition=2).error_code == 0
    found = wire.ask(fetch("t", partition=2), 12).responses[0].partitions[0]
    assert values(found) == [b"new"]
    assert values(wire.fetch("t")) == [b"old"]
    assert len(wire.metadata("t").topics[0].partitions) == 3


def test_validated_partitions_are_not_created(wire: Wire) -> None:
    wire.create("t")
    assert grow(wire, "t", 2, validate_only=True) == 0
    assert len(wire.metadata("t").topics[0].partitions) == 1


def test_each_topic_has_its_own_result(wire: Wire) -> None:
    wire.create("t", 2)
    wanted = [CreatePartitionsTopic("t", 1), CreatePartitionsTopic("nobody", 3)]
    results = wire.ask(CreatePartitionsRequest(wanted)).results
    assert [(result.name, result.error_code) for result in results] == [
        ("t", ErrorCode.INVALID_PARTITIONS),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert results[0].error_message == "topic t has 2 partitions; a new number is greater, and 1 is not"


def test_a_waiting_fetch_continues_while_its_topic_gets_partitions(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    with Wire(broker.bootstrap_servers) as reader:
        request = fetch("t", max_wait_ms=20_000)
        reader.send(request, 12)
        assert grow(wire, "t", 2) == 0
        wire.ask(produce("t", batch([b"a"])), 11)
        assert values(reader.receive(request, 12)[1].responses[0].partitions[0]) == [b"a"]


def test_added_partitions_persist_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert grow(wire, "t", 2) == 0
        wire.produce("t", b"a", partition=1)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        found = wire.ask(fetch("t", partition=1), 12).responses[0].partitions[0]
        assert values(found) == [b"a"]


@pytest.mark.behaviour("B8")
def test_confluents_admin_client_adds_partitions(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for grown in admin.create_partitions([NewPartitions("t", 4)]).values():
        grown.result(20)
    assert len(admin.list_topics(timeout=20).topics["t"].partitions) == 4


def test_kafka_pythons_admin_client_adds_partitions(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_partitions({"t": kafka.admin.NewPartitions(4)})
    admin.close()
    assert len(wire.metadata("t").topics[0].partitions) == 4
