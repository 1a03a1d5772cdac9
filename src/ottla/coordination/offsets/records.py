"""The records of committed offsets in `__consumer_offsets`, in Kafka's schemas."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.serde import encode
from ottla.errors import CorruptRecordError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import ZERO_UUID, Int32, Int64, Message, String, Uuid, message, since, tagged

KEY_KINDS = (0, 1)
"""Both are offset commits; Kafka writes 1."""
KEY_KIND = 1
VALUE_VERSION = 3
"""The version that Kafka wrote until 4.1, and that every version since 2.1 reads."""
EXPIRING_VERSION = 1
"""The one version that has room for an expiry of its own; it has none for the leader epoch."""


@message(key=1, versions="0")
class OffsetCommitKey(Message):
    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@message(key=1, versions="0-4", flexible="4+")
class OffsetCommitValue(Message):
    offset: Int64 = 0
    leader_epoch: Int32 = since(3, default=-1, ignorable=True)
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Int64 = since(1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = tagged(0, since=4, default=ZERO_UUID, ignorable=True)


class OffsetRecord(NamedTuple):
    """One group's committed offset for one partition; without a value it is forgotten."""

    key: OffsetCommitKey
    value: OffsetCommitValue | None

    @classmethod
    def of(
        cls, group: str, partition: TopicPartition, committed: OffsetAndMetadata, wall_ms: int, expires_ms: int = -1
    ) -> OffsetRecord:
        """Return the record of a commit; `expires_ms` is the commit's own expiry time, or -1."""
        value = OffsetCommitValue(committed.offset, committed.leader_epoch, committed.metadata, wall_ms, expires_ms)
        return cls(OffsetCommitKey(group, *partition), value)

    @classmethod
    def tombstone(cls, group: str, partition: TopicPartition) -> OffsetRecord:
        """Return the record that deletes a committed offset."""
        return cls(OffsetCommitKey(group, *partition), None)

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.key.topic, self.key.partition)


def encode_record(record: OffsetRecord) -> tuple[bytes, bytes | None]:
    """Key and value as bytes."""
    key = encode(KEY_KIND, 0, record.key)
    if record.value is None:
        return key, None
    version = VALUE_VERSION if record.value.expire_timestamp < 0 else EXPIRING_VERSION
    return key, encode(version, version, record.value)


def decode_record(key: bytes | None, value: bytes | None) -> OffsetRecord | None:
    """Return a record of the log; None for one that is not about offsets. CorruptRecordError where it cannot be read."""
    if key is None or int.from_bytes(key[:2], "big") not in KEY_KINDS:
        return None
    try:
        read_key: OffsetCommitKey = Reader(key, 2).read(plan_of(OffsetCommitKey, 0))
        if value is None:
            return OffsetRecord(read_key, None)
        version = int.from_bytes(value[:2], "big")
        if version not in OffsetCommitValue.VERSIONS:
            raise CorruptRecordError(
                f"a committed offset has version {version}; {OffsetCommitValue.VERSIONS} are known"
            )
        return OffsetRecord(read_key, Reader(value, 2).read(plan_of(OffsetCommitValue, version)))
    except MalformedError as error:
        raise CorruptRecordError(f"a record of __consumer_offsets cannot be read: {error}") from None
