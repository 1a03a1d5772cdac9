"""Records of the internal topics: their bytes, and what damage does to them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    EndTransactionRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    ZkMigrationRecord,
)
from ottla.coordination.cluster.records import (
    AccessControlEntryRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
    decode_record,
    encode_record,
)
from ottla.coordination.offsets import records as offsets
from ottla.errors import CorruptRecordError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.schema import Message

ID = uuid.UUID(int=7)
RECORDS = [
    TopicRecord("orders", ID),
    PartitionRecord(3, ID, [1], [1], [], [], 1, 0, 0, 0, [uuid.UUID(int=1)]),
    ConfigRecord(2, "orders", "retention.ms", "1000"),
    ConfigRecord(2, "orders", "retention.ms", None),
    PartitionChangeRecord(3, ID, leader=1),
    PartitionChangeRecord(3, ID, [1], 1, eligible_leader_replicas=[], last_known_elr=[]),
    RemoveTopicRecord(ID),
    UnknownRecord(b"\x01\x3f\x00\x01"),
    PartitionRecord(3, ID, [1, 2], [], [2], [3], -1, 1, 4, 9, [ID, ID], [1], [2]),
    RegisterBrokerRecord(
        3,
        incarnation_id=ID,
        broker_epoch=9,
        end_points=[BrokerEndpoint("PLAINTEXT", "a", 65535, 0)],
        features=[BrokerFeature("metadata.version", 7, 30)],
        rack="r",
        log_dirs=[ID],
        cordoned_log_dirs=[ID],
    ),
    BrokerRegistrationChangeRecord(3, 9, -1, 1, [ID], []),
    UnregisterBrokerRecord(3, 9),
    FenceBrokerRecord(3, 9),
    UnfenceBrokerRecord(3, 9),
    RegisterControllerRecord(3, ID, False, [ControllerEndpoint("C", "a", 1, 0)], [ControllerFeature("f", 0, 1)]),
    UnregisterControllerRecord(3),
    ClearElrRecord("orders"),
    NoOpRecord(),
    ZkMigrationRecord(3),
    BeginTransactionRecord("Bootstrap records"),
    EndTransactionRecord(),
    AbortTransactionRecord("why"),
    AccessControlEntryRecord(ID, 2, "orders", 4, "User:a", "*", 3, 3),
    RemoveAccessControlEntryRecord(ID),
    ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", 1e6),
    ProducerIdsRecord(1, -1, 1000),
    FeatureLevelRecord("metadata.version", 30),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_metadata_record_is_read_back_unchanged(record: object) -> None:
    assert decode_record(encode_record(record)) == record  # type: ignore[arg-type]


def test_a_metadata_record_has_kafkas_frame() -> None:
    # frame version 1, kind 2, version 0, "ab" as a compact string, the id, no tags
    assert encode_record(TopicRecord("ab", ID)) == b"\x01\x02\x00\x03ab" + ID.bytes + b"\x00"


def test_an_unknown_record_type_of_a_later_kafka_is_returned_raw() -> None:
    assert decode_record(b"\x01\x3f\x00\x00") == UnknownRecord(b"\x01\x3f\x00\x00")


def test_a_record_is_written_in_the_oldest_version_that_can_represent_it() -> None:
    assert encode_record(RegisterBrokerRecord(1))[2] == 3
    assert encode_record(RegisterBrokerRecord(1, cordoned_log_dirs=[]))[2] == 4
    assert encode_record(PartitionRecord(1))[2] == 1
    assert encode_record(PartitionRecord(1, eligible_leader_replicas=[2]))[2] == 2


def test_a_partition_change_record_contains_only_changes_in_the_order_of_tags() -> None:
    record = PartitionChangeRecord(3, ID, [1], 1, eligible_leader_replicas=[], last_known_elr=[2])
    # frame, kind and version; partition, topic; four tags: each its number, its size and its value
    assert encode_record(record) == (
        b"\x01\x05\x02" + (3).to_bytes(4, "big") + ID.bytes + b"\x04"
        b"\x00\x05\x02\0\0\0\1" + b"\x01\x04\0\0\0\1" + b"\x06\x01\x01" + b"\x07\x05\x02\0\0\0\2"
    )  # fmt: skip


@pytest.mark.parametrize("value", [b"", b"\x02\x02\x00", b"\x01\x02\x09", b"\x01\x02\x00\x7f", b"\x01\x02\x00\x03ab"])
def test_a_damaged_metadata_record_is_one_clear_error(value: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decode_record(value)


def test_an_offset_commit_has_kafkas_bytes() -> None:
    record = offsets.OffsetRecord.of("g", TopicPartition("t", 2), OffsetAndMetadata(5, "m", 1), 9)
    key, value = offsets.encode_record(record)
    assert key == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\2"
    assert value == b"\0\3" + (5).to_bytes(8, "big") + b"\0\0\0\1" + b"\0\1m" + (9).to_bytes(8, "big")


@given(st.text(max_size=9), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.text(max_size=9))
def test_an_offset_commit_is_read_back_unchanged(group: str, partition: int, offset: int, metadata: str) -> None:
    record = offsets.OffsetRecord.of(group, TopicPartition("t", partition), OffsetAndMetadata(offset, metadata), 3)
    assert offsets.decode_record(*offsets.encode_record(record)) == record


def test_a_tombstone_and_a_record_of_another_kind_are_distinguished() -> None:
    key = offsets.encode_record(offsets.OffsetRecord(offsets.OffsetCommitKey("g", "t", 0), None))[0]
    forgotten = offsets.decode_record(key, None)
    assert forgotten is not None
    assert forgotten.value is None
    assert offsets.decode_record(b"\0\2\0\1g", b"anything") is None


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_garbage_in_the_offsets_topic_is_refused_or_passed_over(key: bytes, value: bytes) -> None:
    try:
        found = offsets.decode_record(b"\0\1" + key, value)
    except CorruptRecordError:
        return
    assert found is not None


@given(st.sampled_from(RECORDS), st.data())
def test_a_metadata_record_with_a_byte_changed_is_read_or_refused(record: Message, data: st.DataObject) -> None:
    value = bytearray(encode_record(record))
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_record(bytes(value))
    except CorruptRecordError:
        return
