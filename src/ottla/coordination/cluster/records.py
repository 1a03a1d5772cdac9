"""The records of `__cluster_metadata` in Kafka's schemas.

A record is a value without key: frame version, kind of record and version of its schema, each an unsigned
varint, then the fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ottla.coordination.cluster.node_records import NODE_KINDS, BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.errors import CorruptRecordError
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Uuid,
    message,
    since,
    struct,
    tagged,
)

FRAME_VERSION = 1
FRAME_BYTES = 3
"""Each of the three numbers in front is below 128, so a varint of one byte."""
NO_LEADER = -1
SAME_LEADER = -2
"""`PartitionChangeRecord.leader` where nobody else leads than before, or the same one for the same time."""
TOPIC_RESOURCE = 2
"""`ConfigRecord.resource_type` of a topic."""
BROKER_RESOURCE = 4
"""… of a broker."""
CLIENT_METRICS_RESOURCE = 16
"""… of a subscription to metrics of clients."""
GROUP_RESOURCE = 32
"""… of a consumer group."""


@message(key=2, versions="0", flexible="0+")
class TopicRecord(Message):
    name: String = ""
    topic_id: Uuid = ZERO_UUID


@message(key=3, versions="0-2", flexible="0+")
class PartitionRecord(Message):
    """A topic has a partition, and this is who leads and copies it."""

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: Sequence[Int32] = ()
    isr: Sequence[Int32] = ()
    removing_replicas: Sequence[Int32] = ()
    adding_replicas: Sequence[Int32] = ()
    leader: Int32 = -1
    leader_recovery_state: Int8 = tagged(0, since=0, default=0)
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Sequence[Uuid] = since(1, default=())
    eligible_leader_replicas: Sequence[Int32] | None = tagged(1, since=2, default=None)
    last_known_elr: Sequence[Int32] | None = tagged(2, since=2, default=None)


@message(key=4, versions="0", flexible="0+")
class ConfigRecord(Message):
    """A config of a topic, broker or group has a value; None gives it back to its default."""

    resource_type: Int8 = 0
    resource_name: String = ""
    name: String = ""
    value: String | None = ""


@message(key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord(Message):
    """Something of a partition is different from now on; what is not named is as it was."""

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: Sequence[Int32] | None = tagged(0, since=0, default=None)
    leader: Int32 = tagged(1, since=0, default=SAME_LEADER)
    replicas: Sequence[Int32] | None = tagged(2, since=0, default=None)
    removing_replicas: Sequence[Int32] | None = tagged(3, since=0, default=None)
    adding_replicas: Sequence[Int32] | None = tagged(4, since=0, default=None)
    leader_recovery_state: Int8 = tagged(5, since=0, default=-1)
    directories: Sequence[Uuid] | None = tagged(8, since=1, default=None)
    eligible_leader_replicas: Sequence[Int32] | None = tagged(6, since=2, default=None)
    last_known_elr: Sequence[Int32] | None = tagged(7, since=2, default=None)


@message(key=28, versions="0", flexible="0+")
class ClearElrRecord(Message):
    """No copy of the topic, or of any topic where none is named, may lead without being in sync (KIP-966)."""

    topic_name: String = ""


@message(key=9, versions="0", flexible="0+")
class RemoveTopicRecord(Message):
    """A topic is no more, nor are its partitions and configs."""

    topic_id: Uuid = ZERO_UUID


@message(key=10, versions="0", flexible="0+")
class DelegationTokenRecord(Message):
    """There is a delegation token, or another end of one; the secret to log in by it is not in here."""

    owner: String = ""
    requester: String = ""
    renewers: Sequence[String] = ()
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: String = ""


@message(key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord(Message):
    """A delegation token is no more."""

    token_id: String = ""


@message(key=11, versions="0", flexible="0+")
class UserScramCredentialRecord(Message):
    """A user has this password, of which only enough is told to check proofs of it."""

    name: String = ""
    mechanism: Int8 = 0
    salt: Bytes = b""
    stored_key: Bytes = b""
    server_key: Bytes = b""
    iterations: Int32 = 0

    def __repr__(self) -> str:
        return f"UserScramCredentialRecord({self.name!r}, {self.mechanism}, [hidden])"


@message(key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(Message):
    """A user has no password for this mechanism any more."""

    name: String = ""
    mechanism: Int8 = 0


@message(key=12, versions="0", flexible="0+")
class FeatureLevelRecord(Message):
    """The cluster runs a feature at this level; 0 is without it."""

    name: String = ""
    feature_level: Int16 = 0


@struct
class EntityData:
    """A user, a client id or an address; None is whoever has nothing of their own."""

    entity_type: String = ""
    entity_name: String | None = ""


@message(key=14, versions="0", flexible="0+")
class ClientQuotaRecord(Message):
    """How much somebody may use of something; or nothing is said of that any more."""

    entity: Sequence[EntityData] = ()
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@message(key=15, versions="0", flexible="0+")
class ProducerIdsRecord(Message):
    """Producer ids below `next_producer_id` are given away."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message):
    """Somebody may, or may not, do something."""

    id: Uuid = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 0
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(Message):
    """What that rule said counts no more."""

    id: Uuid = ZERO_UUID


class ForeignRecord(Message, Struct, frozen=True):
    """What a later Kafka wrote, which finds it again: who opens its directory here must not lose it."""

    value: bytes


KNOWN: tuple[type[Message], ...] = (
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
    FeatureLevelRecord,
    ClientQuotaRecord,
    ProducerIdsRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    RemoveDelegationTokenRecord,
    ClearElrRecord,
    *NODE_KINDS,
)
KINDS = {kind.KEY: kind for kind in KNOWN}
"""All that Kafka 4.3 writes, by their kinds."""
WRITTEN = {
    PartitionRecord.KEY: 1,
    PartitionChangeRecord.KEY: 2,
    RegisterBrokerRecord.KEY: 3,
    BrokerRegistrationChangeRecord.KEY: 2,
}
"""The version that is written where it is not 0 …"""
SAID_NEXT = {
    PartitionRecord.KEY: ("eligible_leader_replicas", "last_known_elr"),
    RegisterBrokerRecord.KEY: ("cordoned_log_dirs",),
    BrokerRegistrationChangeRecord.KEY: ("cordoned_log_dirs",),
}
"""… and fields for which it is the next one: what an older Kafka need not know is not in its way."""


def encode_record(record: Message) -> bytes:
    if isinstance(record, ForeignRecord):
        return record.value
    version = version_of(record)
    parts = Writer(bytes((FRAME_VERSION, record.KEY, version))).write(plan_of(type(record), version), record)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def version_of(record: Message) -> int:
    """The version in which a record is written."""
    said = any(getattr(record, name) is not None for name in SAID_NEXT.get(record.KEY, ()))
    return WRITTEN.get(record.KEY, 0) + said


def decode_record(value: bytes) -> Message:
    """The record in a value; a kind that only a later Kafka knows comes as it is.

    CorruptRecordError where it cannot be read, or is newer than what is known here.
    """
    if len(value) < FRAME_BYTES or value[0] != FRAME_VERSION:
        raise CorruptRecordError(f"a metadata record begins with {value[:FRAME_BYTES]!r}, not with frame version 1")
    kind, version = KINDS.get(value[1]), value[2]
    if kind is None:
        return ForeignRecord(value)
    if version not in kind.VERSIONS:
        raise CorruptRecordError(f"a {kind.__name__} has version {version}; {kind.VERSIONS} are known")
    reader = Reader(value, FRAME_BYTES)
    try:
        record: Message = reader.read(plan_of(kind, version))
        reader.finish()
    except MalformedError as error:
        raise CorruptRecordError(f"a metadata record cannot be read: {error}") from None
    return record
