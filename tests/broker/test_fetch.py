"""Fetch: what it returns, how much of it, and when."""

from __future__ import annotations

import time
import uuid

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.wire import Wire, batch, fetch, values


@pytest.mark.parametrize("version", range(4, 13))
def test_records_are_fetched_by_name_in_every_version(wire: Wire, version: int) -> None:
    wire.create("t")
    wire.produce("t", b"a", b"b")
    found = wire.fetch("t", version=version)
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 2, 2)
    assert values(found) == [b"a", b"b"]


@pytest.mark.parametrize("version", range(13, 19))
def test_records_are_fetched_by_id_in_every_version(wire: Wire, version: int) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    topic_id, unknown = wire.metadata("t").topics[0].topic_id, uuid.UUID(int=5)
    wanted = [FetchPartition(0, partition_max_bytes=1000)]
    request = FetchRequest(topics=[FetchTopic(topic_id=i, partitions=wanted) for i in (topic_id, unknown)])
    known, missing = wire.ask(request, version).responses
    assert (known.topic_id, values(known.partitions[0])) == (topic_id, [b"a"])
    assert (missing.topic_id, missing.partitions[0].error_code) == (unknown, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_offset_inside_a_batch_returns_the_whole_batch(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a", b"b", b"c")
    assert values(wire.fetch("t", 1)) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("offset", [-1, 2, 1000])
def test_an_unavailable_offset_is_out_of_range_without_other_fields(wire: Wire, offset: int) -> None:
    """The response bytes of Apache Kafka 4.3.1."""
    wire.create("t")
    wire.produce("t", b"a")
    found = wire.fetch("t", offset, max_wait_ms=10_000)
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (found.log_start_offset, found.high_watermark, found.last_stable_offset) == (-1, -1, -1)
    assert (found.aborted_transactions, bytes(found.records or b"")) == (None, b"")


def test_an_unknown_topic_is_answered_at_once(wire: Wire) -> None:
    assert wire.fetch("nowhere", max_wait_ms=10_000).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_leader_epoch_is_rejected(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    assert wire.fetch("t", leader_epoch=0).error_code == 0
    assert wire.fetch("t", leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.behaviour("C4")
def test_a_first_batch_above_both_limits_is_returned_whole_and_the_limits_apply_after_it(wire: Wire) -> None:
    wire.create("t")
    for letter in (b"a", b"b", b"c"):
        wire.produce("t", letter * 1000)
    assert values(wire.fetch("t", max_bytes=10, partition_max_bytes=10)) == [b"a" * 1000]
    assert values(wire.fetch("t", partition_max_bytes=2300)) == [b"a" * 1000, b"b" * 1000]
    assert values(wire.fetch("t", max_bytes=2300)) == [b"a" * 1000, b"b" * 1000]


@pytest.mark.behaviour("C4")
def test_the_limit_of_a_response_applies_across_partitions(wire: Wire) -> None:
    wire.create("t", partitions=3)
    for index in range(3):
        wire.produce("t", bytes(1000), partition=index)
    wanted = [FetchPartition(index, partition_max_bytes=10_000) for index in range(3)]
    request = FetchRequest(max_bytes=2300, topics=[FetchTopic("t", partitions=wanted)])
    (topic,) = wire.ask(request, 12).responses
    assert [len(values(found)) for found in topic.partitions] == [1, 1, 0]


@pytest.mark.behaviour("C4")
def test_a_response_waits_for_the_minimum_bytes(wire: Wire, broker: Broker) -> None:
    wire.create("t")
    enough = 2 * len(batch([bytes(100)]))
    request = fetch("t", max_wait_ms=60_000, min_bytes=enough)
    wire.send(request, 12)
    with Wire(broker.bootstrap_servers) as other:
        other.produce("t", bytes(100))
        wire.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.receive(request, 12)
        wire.socket.settimeout(20)
        other.produce("t", bytes(100))
    _, response = wire.receive(request, 12)
    assert len(values(response.responses[0].partitions[0])) == 2
    other.socket.close()


@pytest.mark.behaviour("C4")
def test_a_response_waits_no_longer_than_the_maximum_wait(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    began = time.monotonic()
    assert values(wire.fetch("t", min_bytes=10_000, max_wait_ms=200)) == [b"a"]
    assert 0.2 <= time.monotonic() - began < 5
    began = time.monotonic()
    assert values(wire.fetch("t", 1, max_wait_ms=200)) == []
    assert 0.2 <= time.monotonic() - began < 5


def test_a_waiting_fetch_is_answered_when_its_topic_is_deleted(wire: Wire, broker: Broker) -> None:
    from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    wire.create("t")
    request = fetch("t", max_wait_ms=60_000)
    wire.send(request, 12)
    with Wire(broker.bootstrap_servers) as other:
        other.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
    _, response = wire.receive(request, 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.behaviour("B2")
def test_reading_deletes_nothing(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a", b"b")
    for _ in range(3):
        assert values(wire.fetch("t")) == [b"a", b"b"]


def test_a_large_response_arrives_whole(wire: Wire) -> None:
    wire.create("t", max_message_bytes=20_000_000)
    value = bytes(range(256)) * 40_000
    wire.produce("t", value)
    wire.produce("t", value)
    found = wire.fetch("t", partition_max_bytes=2**30, max_bytes=2**30)
    assert values(found) == [value, value]
