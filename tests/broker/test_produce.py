"""Produce: what is appended, what is refused and how."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from tests.broker.wire import Wire, batch, produce, values


@pytest.mark.parametrize("version", range(3, 13))
def test_a_batch_gets_the_next_offsets_in_every_version_with_names(wire: Wire, version: int) -> None:
    wire.create("t")
    assert wire.produce("t", b"a", b"b", version=version).base_offset == 0
    assert wire.produce("t", b"c", version=version).base_offset == 2
    assert values(wire.fetch("t")) == [b"a", b"b", b"c"]


def test_from_version_13_on_a_topic_is_identified_by_its_id(wire: Wire) -> None:
    wire.create("t")
    topic_id = wire.metadata("t").topics[0].topic_id
    data = [PartitionProduceData(0, batch([b"a"]))]
    known, unknown = TopicProduceData(topic_id=topic_id, partition_data=data), uuid.UUID(int=9)
    request = ProduceRequest(acks=1, topic_data=[known, TopicProduceData(topic_id=unknown, partition_data=data)])
    first, second = wire.ask(request, 13).responses
    assert (first.topic_id, first.partition_responses[0].error_code) == (topic_id, 0)
    assert (second.topic_id, second.partition_responses[0].error_code) == (unknown, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("acks", [1, -1])
def test_acks_1_and_all_are_answered_with_the_offset(wire: Wire, acks: int) -> None:
    wire.create("t")
    result = wire.produce("t", b"a", acks=acks)
    assert (result.error_code, result.base_offset, result.log_start_offset) == (0, 0, 0)


@pytest.mark.behaviour("P3")
def test_acks_0_is_appended_without_a_response(wire: Wire) -> None:
    wire.create("t")
    wire.send(produce("t", batch([b"a"]), acks=0), 9)
    assert values(wire.fetch("t", max_wait_ms=10_000)) == [b"a"]


def test_acks_0_with_an_error_closes_the_connection(wire: Wire) -> None:
    wire.send(produce("nowhere", batch([b"a"]), acks=0), 9)
    assert wire.hung_up()


def test_acks_all_requires_no_more_in_sync_replicas_than_there_are(wire: Wire) -> None:
    wire.create("t", min_insync_replicas=2)
    assert wire.produce("t", b"a", acks=-1).error_code == 0
    assert wire.produce("t", b"a", acks=1).error_code == 0


def test_other_acks_are_rejected(wire: Wire) -> None:
    wire.create("t")
    result = wire.produce("t", b"a", acks=2)
    assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert "acks is 2" in str(result.error_message)


def test_one_invalid_partition_does_not_prevent_the_others(wire: Wire) -> None:
    wire.create("t", partitions=2)
    data = [PartitionProduceData(index, batch([b"a"])) for index in (0, 7, 1)]
    (topic,) = wire.ask(ProduceRequest(acks=1, topic_data=[TopicProduceData("t", partition_data=data)]), 9).responses
    assert [p.error_code for p in topic.partition_responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]


@pytest.mark.parametrize(("topic", "code"), [("nowhere", 3), ("a b", 17), ("__cluster_metadata", 17)])
def test_unknown_topics_are_rejected_and_not_created(wire: Wire, topic: str, code: int) -> None:
    assert wire.produce(topic, b"a").error_code == code
    assert wire.metadata().topics == []


def test_a_damaged_batch_is_rejected_and_nothing_is_written(wire: Wire) -> None:
    wire.create("t")
    damaged = bytearray(batch([b"abcdef"]))
    damaged[-3] ^= 1
    (topic,) = wire.ask(produce("t", bytes(damaged)), 9).responses
    assert topic.partition_responses[0].error_code == ErrorCode.CORRUPT_MESSAGE
    assert "CRC" in str(topic.partition_responses[0].error_message)
    assert wire.produce("t", b"good").base_offset == 0


@pytest.mark.parametrize("records", [None, b"", b"x" * 20, batch([b"a"]) + batch([b"b"])])
def test_anything_but_one_batch_is_rejected(wire: Wire, records: bytes | None) -> None:
    wire.create("t")
    (topic,) = wire.ask(produce("t", records), 9).responses
    assert topic.partition_responses[0].error_code == ErrorCode.INVALID_RECORD
    assert values(wire.fetch("t")) == []


def test_a_batch_above_the_limit_is_too_large(wire: Wire) -> None:
    wire.create("t", max_message_bytes=1000)
    assert wire.produce("t", bytes(2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce("t", bytes(900)).error_code == 0


def test_the_broker_limit_applies_to_topics_without_their_own() -> None:
    with Broker(message_max_bytes=1000) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert wire.produce("t", bytes(2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_the_offsets_topic_rejects_producers(wire: Wire) -> None:
    wire.create("__consumer_offsets")
    assert wire.produce("__consumer_offsets", b"a").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_every_codec_are_returned_unchanged(wire: Wire, codec: Codec) -> None:
    wire.create("t")
    wire.produce("t", b"a" * 500, b"b" * 500, codec=codec)
    assert values(wire.fetch("t")) == [b"a" * 500, b"b" * 500]


def test_log_append_time_is_set_by_the_broker(wire: Wire) -> None:
    wire.create("t", message_timestamp_type="LogAppendTime")
    result = wire.produce("t", b"a")
    assert result.log_append_time_ms > 1_700_000_000_000


def test_a_repeated_batch_of_an_idempotent_producer_is_appended_once(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"x")
    builder = BatchBuilder()
    builder.append(1, None, b"a")
    data = builder.build(7, 0, 0)
    for _ in range(2):
        (topic,) = wire.ask(produce("t", data), 9).responses
        assert (topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset) == (0, 1)
    assert values(wire.fetch("t")) == [b"x", b"a"]


def test_a_disk_failure_and_its_end_are_logged_once(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", no_space)
        assert [wire.produce("t", b"b").error_code for _ in range(3)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert wire.produce("t", b"c").base_offset == 1
    failed, recovered = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert failed.startswith("t-0 takes no records until its disk does: KAFKA_STORAGE_ERROR")
    assert "No space left on device" in failed
    assert recovered == "t-0 takes records again"


def no_space(*args: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")
