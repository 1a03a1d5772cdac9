"""The records of consumer groups in `__consumer_offsets`, in Kafka's schemas; one without a value takes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.serde import encode
from ottla.errors import CorruptRecordError
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import (
    ZERO_UUID,
    Bytes,
    Int8,
    Int32,
    Int64,
    Message,
    String,
    Uuid,
    message,
    struct,
    tagged,
)


@message(key=3, versions="0")
class GroupEpochKey(Message):
    group_id: String = ""


@message(key=3, versions="0", flexible="0+")
class GroupEpochValue(Message):
    epoch: Int32 = 0
    metadata_hash: Int64 = tagged(0, since=0, default=0)
    """The digest of the topics that the group reads (KIP-1101); each coordinator may compute it in its own way."""


@message(key=4, versions="0")
class PartitionMetadataKey(Message):
    """The record that the digest replaced in Kafka 4.1; never written with a value."""

    group_id: String = ""


@message(key=4, versions="0", flexible="0+")
class PartitionMetadataValue(Message):
    """Not read further than that it is there."""


@message(key=5, versions="0")
class MemberMetadataKey(Message):
    group_id: String = ""
    member_id: String = ""


@struct
class ClassicProtocol:
    name: String = ""
    metadata: Bytes = b""


@struct
class ClassicMemberMetadata:
    session_timeout_ms: Int32 = 0
    supported_protocols: Sequence[ClassicProtocol] = ()


@message(key=5, versions="0", flexible="0+")
class MemberMetadataValue(Message):
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Sequence[String] = ()
    subscribed_topic_regex: String | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = None
    classic_member_metadata: ClassicMemberMetadata | None = tagged(0, since=0, default=None, marked=True)


@message(key=6, versions="0")
class TargetEpochKey(Message):
    group_id: String = ""


@message(key=6, versions="0", flexible="0+")
class TargetEpochValue(Message):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tagged(0, since=0, default=0)


@message(key=7, versions="0")
class TargetMemberKey(Message):
    group_id: String = ""
    member_id: String = ""


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@message(key=7, versions="0", flexible="0+")
class TargetMemberValue(Message):
    topic_partitions: Sequence[TopicPartitions] = ()


@message(key=8, versions="0")
class CurrentMemberKey(Message):
    group_id: String = ""
    member_id: String = ""


@struct
class OwnedPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()
    assignment_epochs: Sequence[Int32] | None = tagged(0, since=0, default=None, marked=True)


@message(key=8, versions="0", flexible="0+")
class CurrentMemberValue(Message):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: Sequence[OwnedPartitions] = ()
    partitions_pending_revocation: Sequence[OwnedPartitions] = ()


@message(key=16, versions="0")
class RegularExpressionKey(Message):
    group_id: String = ""
    regular_expression: String = ""


@message(key=16, versions="0", flexible="0+")
class RegularExpressionValue(Message):
    topics: Sequence[String] = ()
    version: Int64 = 0
    timestamp: Int64 = 0


PAIRS: dict[int, tuple[type[Message], type[Message]]] = {
    key.KEY: (key, value)
    for key, value in (
        (GroupEpochKey, GroupEpochValue),
        (PartitionMetadataKey, PartitionMetadataValue),
        (MemberMetadataKey, MemberMetadataValue),
        (TargetEpochKey, TargetEpochValue),
        (TargetMemberKey, TargetMemberValue),
        (CurrentMemberKey, CurrentMemberValue),
        (RegularExpressionKey, RegularExpressionValue),
    )
}
"""Kind of record → what its key and its value are."""


class ConsumerGroupRecord(NamedTuple):
    """One record of a consumer group: a key of one of the kinds, and a value or None."""

    key: Message
    value: Message | None

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group_id  # type: ignore[attr-defined]  # the first field of each key
        return group_id


def encode_record(record: ConsumerGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value as bytes."""
    key = encode(record.key.KEY, 0, record.key)
    return key, None if record.value is None else encode(0, 0, record.value)


def decode_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord:
    """Decode a record of which the kind is in `PAIRS`. Raise CorruptRecordError if it is malformed."""
    kind = int.from_bytes(key[:2], "big")
    key_class, value_class = PAIRS[kind]
    try:
        read_key = Reader(key, 2).read(plan_of(key_class, 0))
        if value is None:
            return ConsumerGroupRecord(read_key, None)
        version = int.from_bytes(value[:2], "big")
        if version not in value_class.VERSIONS:
            raise CorruptRecordError(f"a record of kind {kind} has version {version}; {value_class.VERSIONS} is known")
        if value_class is PartitionMetadataValue:
            return ConsumerGroupRecord(read_key, PartitionMetadataValue())
        return ConsumerGroupRecord(read_key, Reader(value, 2).read(plan_of(value_class, 0)))
    except MalformedError as error:
        raise CorruptRecordError(f"a record of a consumer group cannot be read: {error}") from None
