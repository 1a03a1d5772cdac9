"""The records of share groups in `__consumer_offsets`, in Kafka's schemas. A record without a value deletes the earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.serde import decode_pair, encode_pair, pairs_of
from ottla.protocol.schema import ZERO_UUID, Int8, Int32, Int64, Message, String, Uuid, message, struct, tagged


@message(key=10, versions="0")
class ShareGroupMemberMetadataKey(Message):
    group_id: String = ""
    member_id: String = ""


@message(key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue(Message):
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Sequence[String] = ()


@message(key=11, versions="0")
class ShareGroupMetadataKey(Message):
    group_id: String = ""


@message(key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue(Message):
    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    """The digest of the topics that the group reads (KIP-1101); each coordinator may compute it in its own way."""


@message(key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: String = ""


@message(key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tagged(0, since=0, default=0, ignorable=True)
    """The time at which the assignment was computed (KIP-1263)."""


@message(key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: String = ""
    member_id: String = ""


@struct
class TopicPartition:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@message(key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: Sequence[TopicPartition] = ()


@message(key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: String = ""
    member_id: String = ""


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@message(key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: Sequence[TopicPartitions] = ()


@message(key=15, versions="0")
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: String = ""


@struct
class TopicPartitionsInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    partitions: Sequence[Int32] = ()


@struct
class TopicInfo:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""


@message(key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue(Message):
    """The partitions of which the share coordinator is creating, has created, and is deleting the state."""

    initializing_topics: Sequence[TopicPartitionsInfo] = ()
    initialized_topics: Sequence[TopicPartitionsInfo] = ()
    deleting_topics: Sequence[TopicInfo] = ()


PAIRS = pairs_of(
    (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (ShareGroupMetadataKey, ShareGroupMetadataValue),
    (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
)


class ShareGroupRecord(NamedTuple):
    """One record of a share group: a key of one of the kinds, and a value or None."""

    key: Message
    value: Message | None

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group_id  # type: ignore[attr-defined]  # the first field of each key
        return group_id


def encode_record(record: ShareGroupRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as bytes."""
    return encode_pair(record.key, record.value)


def decode_record(key: bytes | None, value: bytes | None) -> ShareGroupRecord | None:
    """Return a record of the log; None if its kind is not in `PAIRS`. Raise CorruptRecordError if it is malformed."""
    found = decode_pair(PAIRS, key, value)
    return None if found is None else ShareGroupRecord(*found)
