"""The records of `__cluster_metadata` in Kafka's schemas (KIP-631), and their encoding.

A record has no key. Its value starts with three unsigned varints, the frame version, the kind of the record and the
version of its schema; the fields follow.
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
"""The size of the three varints: each of these numbers is below 128."""
NO_LEADER = -1
SAME_LEADER = -2
"""`PartitionChangeRecord.leader` if the leader and its epoch do not change."""
TOPIC_RESOURCE = 2
"""`ConfigRecord.resource_type` of a topic."""
BROKER_RESOURCE = 4
"""`ConfigRecord.resource_type` of a broker."""
CLIENT_METRICS_RESOURCE = 16
"""`ConfigRecord.resource_type` of a client metrics subscription."""
GROUP_RESOURCE = 32
"""`ConfigRecord.resource_type` of a group."""


@message(key=2, versions="0", flexible="0+")
class TopicRecord(Message):
    name: String = ""
    topic_id: Uuid = ZERO_UUID


@message(key=3, versions="0-2", flexible="0+")
class PartitionRecord(Message):
    """The whole state of a partition."""

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
    """A config of a resource is set; a value of None restores the default."""

    resource_type: Int8 = 0
    resource_name: String = ""
    name: String = ""
    value: String | None = ""


@message(key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord(Message):
    """A change of a partition; absent fields are unchanged."""

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
    """The ELRs of all partitions of a topic are cleared, or of all topics if the name is empty (KIP-966)."""

    topic_name: String = ""


@message(key=9, versions="0", flexible="0+")
class RemoveTopicRecord(Message):
    """A topic is deleted with its partitions and configs."""

    topic_id: Uuid = ZERO_UUID


@message(key=10, versions="0", flexible="0+")
class DelegationTokenRecord(Message):
    """A delegation token is created, or its expiry changes. The record does not contain the HMAC of the token."""

    owner: String = ""
    requester: String = ""
    renewers: Sequence[String] = ()
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: String = ""


@message(key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord(Message):
    """A delegation token is removed."""

    token_id: String = ""


@message(key=11, versions="0", flexible="0+")
class UserScramCredentialRecord(Message):
    """The SCRAM credential of a user: enough to verify a login, and not the password."""

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
    """The SCRAM credential of a user for one mechanism is removed."""

    name: String = ""
    mechanism: Int8 = 0


@message(key=12, versions="0", flexible="0+")
class FeatureLevelRecord(Message):
    """The finalized level of a feature; 0 switches it off."""

    name: String = ""
    feature_level: Int16 = 0


@struct
class EntityData:
    """One part of a quota entity: a user, a client id or an IP address. A name of None is the default entity."""

    entity_type: String = ""
    entity_name: String | None = ""


@message(key=14, versions="0", flexible="0+")
class ClientQuotaRecord(Message):
    """A quota of an entity is set or removed."""

    entity: Sequence[EntityData] = ()
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@message(key=15, versions="0", flexible="0+")
class ProducerIdsRecord(Message):
    """Producer ids below `next_producer_id` are allocated."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message):
    """An ACL is created; the record that deletes it has the same `id`."""

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
    """The ACL that was created with this `id` is deleted."""

    id: Uuid = ZERO_UUID


class UnknownRecord(Message, Struct, frozen=True):
    """A record of a later Kafka, as bytes. It is kept unchanged, so that a later version can read it again."""

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
"""Number → class, for every record that Kafka 4.4 writes."""
WRITTEN = {
    PartitionRecord.KEY: 1,
    PartitionChangeRecord.KEY: 2,
    RegisterBrokerRecord.KEY: 3,
    BrokerRegistrationChangeRecord.KEY: 2,
}
"""Kind → the version that is written, if it is not 0."""
SAID_NEXT = {
    PartitionRecord.KEY: ("eligible_leader_replicas", "last_known_elr"),
    RegisterBrokerRecord.KEY: ("cordoned_log_dirs",),
    BrokerRegistrationChangeRecord.KEY: ("cordoned_log_dirs",),
}
"""Kind → the fields that need the next version.

It is written only if one of them is set, so that an older Kafka can read the others.
"""


def encode_record(record: Message) -> bytes:
    if isinstance(record, UnknownRecord):
        return record.value
    version = choose_version(record)
    parts = Writer(bytes((FRAME_VERSION, record.KEY, version))).write(plan_of(type(record), version), record)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def choose_version(record: Message) -> int:
    """Return the version in which a record is written."""
    said = any(getattr(record, name) is not None for name in SAID_NEXT.get(record.KEY, ()))
    return WRITTEN.get(record.KEY, 0) + said


def decode_record(value: bytes) -> Message:
    """Return the record in a value, as UnknownRecord if its kind is unknown.

    Raise CorruptRecordError if the value is malformed, or the version of a known kind is unknown.
    """
    if len(value) < FRAME_BYTES or value[0] != FRAME_VERSION:
        raise CorruptRecordError(f"a metadata record begins with {value[:FRAME_BYTES]!r}, not with frame version 1")
    kind, version = KINDS.get(value[1]), value[2]
    if kind is None:
        return UnknownRecord(value)
    if version not in kind.VERSIONS:
        raise CorruptRecordError(f"a {kind.__name__} has version {version}; {kind.VERSIONS} are known")
    reader = Reader(value, FRAME_BYTES)
    try:
        record: Message = reader.read(plan_of(kind, version))
        reader.finish()
    except MalformedError as error:
        raise CorruptRecordError(f"a metadata record cannot be read: {error}") from None
    return record
