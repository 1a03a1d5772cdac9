"""DeleteRecords: what is below the offset is out of reach, and stays so."""

from __future__ import annotations

import shutil
from pathlib import Path

import confluent_kafka as ck
import kafka
import kafka.admin
import pytest
from confluent_kafka.admin import AdminClient

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.model import EARLIEST
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.wire import Wire, values

pytestmark = pytest.mark.behaviour("B2")


def delete(wire: Wire, topic: str, offset: int, version: int = 2, partition: int = 0) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])
    response = wire.ask(DeleteRecordsRequest([wanted], 1000), version)
    result: DeleteRecordsPartitionResult = response.topics[0].partitions[0]
    return result


def beginning(wire: Wire, topic: str) -> int:
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=EARLIEST)])])
    return int(wire.ask(request).topics[0].partitions[0].offset)


def fill(wire: Wire, topic: str = "t") -> None:
    wire.create(topic)
    for value in (b"a", b"b", b"c"):
        wire.produce(topic, value)


@pytest.mark.parametrize("version", range(3))
def test_the_log_starts_at_the_requested_offset(wire: Wire, version: int) -> None:
    fill(wire)
    assert delete(wire, "t", 2, version) == DeleteRecordsPartitionResult(0, 2, 0)
    assert beginning(wire, "t") == 2
    assert wire.fetch("t", 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = wire.fetch("t", 2)
    assert (values(found, 2), found.log_start_offset) == ([b"c"], 2)


def test_the_log_start_never_decreases(wire: Wire) -> None:
    fill(wire)
    assert delete(wire, "t", 2).low_watermark == 2
    assert delete(wire, "t", 1) == DeleteRecordsPartitionResult(0, 2, 0)


def test_all_records_can_be_deleted_and_offsets_continue(wire: Wire) -> None:
    fill(wire)
    assert delete(wire, "t", -1).low_watermark == 3
    assert wire.fetch("t", 3).error_code == 0
    assert wire.produce("t", b"d").base_offset == 3


def test_an_invalid_deletion_is_rejected(wire: Wire) -> None:
    fill(wire)
    wire.create("compacted", cleanup_policy="compact")
    wire.create("__consumer_offsets")
    assert delete(wire, "t", 4) == DeleteRecordsPartitionResult(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert delete(wire, "t", -2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(wire, "t", 1, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(wire, "compacted", 0).error_code == ErrorCode.POLICY_VIOLATION
    assert delete(wire, "__consumer_offsets", 0).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_deleted_records_do_not_reappear_after_a_crash(tmp_path: Path) -> None:
    with Broker(tmp_path / "before") as broker, Wire(broker.bootstrap_servers) as wire:
        fill(wire)
        assert delete(wire, "t", 2).error_code == 0
        # What a crash at this moment would leave behind.
        shutil.copytree(tmp_path / "before", tmp_path / "after")
    with Broker(tmp_path / "after") as broker, Wire(broker.bootstrap_servers) as wire:
        assert beginning(wire, "t") == 2


def test_confluents_admin_client_deletes_records(broker: Broker, wire: Wire) -> None:
    fill(wire)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for partition, result in admin.delete_records([ck.TopicPartition("t", 0, 2)]).items():
        assert (partition.topic, result.result(20).low_watermark) == ("t", 2)
    assert beginning(wire, "t") == 2


def test_kafka_pythons_admin_client_deletes_records(broker: Broker, wire: Wire) -> None:
    fill(wire)
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_records({kafka.TopicPartition("t", 0): 1})
    admin.close()
    assert beginning(wire, "t") == 1
