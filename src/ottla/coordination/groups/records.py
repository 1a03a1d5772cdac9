"""The records of groups, and all records that a partition of `__consumer_offsets` holds.

The schemas are Kafka's. `GroupState` is no record of the log: it carries what dies with the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.consumer_groups import records as consumers
from ottla.coordination.consumer_groups.events import ImageSeen, OwnSettingsSeen
from ottla.coordination.consumer_groups.records import ConsumerRecord
from ottla.coordination.groups.group import Group
from ottla.coordination.groups.member import Member
from ottla.coordination.groups.state import State
from ottla.coordination.offsets import records as offsets
from ottla.coordination.offsets.pending import PendingRecord, TransactionEnded
from ottla.coordination.offsets.records import OffsetRecord, encode
from ottla.errors import CorruptRecordError
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Bytes, Int32, Int64, Message, String, message, since, struct

KEY_KIND = 2
VALUE_VERSION = 3
"""What Kafka writes; 4 differs only in how it is written."""


@message(key=2, versions="0")
class GroupMetadataKey(Message):
    group: String = ""


@struct
class MemberMetadata:
    member_id: String = ""
    group_instance_id: String | None = since(3, default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Int32 = since(1, default=-1, ignorable=True)
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


@message(key=2, versions="0-4", flexible="4+")
class GroupMetadataValue(Message):
    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = None
    leader: String | None = None
    current_state_timestamp: Int64 = since(2, default=-1, ignorable=True)
    members: Sequence[MemberMetadata] = ()


class GroupRecord(NamedTuple):
    """A group's members and their assignment, Stable or Empty; without a value the group is no more."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None

    @classmethod
    def of(cls, group: Group) -> GroupRecord:
        """A group as the log keeps it."""
        members = [metadata_of(member, group.protocol_name) for member in group.members.values()]
        value = GroupMetadataValue(
            group.protocol_type, group.generation, group.protocol_name, group.leader, group.changed_ms, members
        )
        return cls(GroupMetadataKey(group.group_id), value)

    @classmethod
    def tombstone(cls, group_id: str) -> GroupRecord:
        """What takes a group away."""
        return cls(GroupMetadataKey(group_id), None)


class GroupState(NamedTuple):
    """A group as it is in memory, with everybody who waits; one that is blank is forgotten."""

    group: Group


Record = (
    OffsetRecord
    | PendingRecord
    | TransactionEnded
    | GroupRecord
    | GroupState
    | ConsumerRecord
    | ImageSeen
    | OwnSettingsSeen
)


def metadata_of(member: Member, protocol: str | None) -> MemberMetadata:
    """A member as the log keeps it."""
    return MemberMetadata(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol),
        member.assignment,
    )


def group_of(record: GroupRecord) -> Group:
    """A group as it comes back from the log: with members it is Stable, and nobody waits."""
    value = record.value
    assert value is not None, "a tombstone is no group"
    members = {each.member_id: member_of(each, value.protocol) for each in value.members}
    group = Group(
        record.key.group,
        State.STABLE if members else State.EMPTY,
        value.generation,
        value.protocol_type,
        value.protocol,
        value.leader if value.leader in members else next(iter(members), None),
        members,
        changed_ms=value.current_state_timestamp,
    )
    return group.changed(topics=group.read_topics(value.protocol))


def member_of(kept: MemberMetadata, protocol: str | None) -> Member:
    """A member as it comes back; of its protocols only the one that was chosen is known."""
    return Member(
        kept.member_id,
        kept.group_instance_id,
        kept.client_id,
        kept.client_host,
        kept.rebalance_timeout if kept.rebalance_timeout >= 0 else kept.session_timeout,
        kept.session_timeout,
        ((protocol or "", kept.subscription),),
        kept.assignment,
    )


def encode_record(record: Record) -> tuple[bytes, bytes | None] | None:
    """Key and value as bytes; None for what is kept in memory only."""
    if isinstance(record, OffsetRecord):
        return offsets.encode_record(record)
    if isinstance(record, PendingRecord):
        return offsets.encode_record(record.record)
    if isinstance(record, ConsumerRecord):
        return consumers.encode_record(record)
    if isinstance(record, GroupState | TransactionEnded | ImageSeen | OwnSettingsSeen):
        return None
    key = encode(KEY_KIND, 0, record.key)
    return key, None if record.value is None else encode(VALUE_VERSION, VALUE_VERSION, record.value)


def producer_of(record: Record) -> tuple[int, int] | None:
    """The id and epoch of the producer within whose transaction a record is written."""
    return (record.producer_id, record.producer_epoch) if isinstance(record, PendingRecord) else None


def within_transaction(record: Record, producer_id: int, producer_epoch: int) -> Record:
    """A record of the log that is part of a transaction."""
    return PendingRecord(producer_id, producer_epoch, record) if isinstance(record, OffsetRecord) else record


def decode_record(key: bytes | None, value: bytes | None) -> Record | None:
    """A record of the log; None for one of a kind that is not known. CorruptRecordError where it cannot be read."""
    kind = None if key is None else int.from_bytes(key[:2], "big")
    if key is not None and kind in consumers.PAIRS:
        return consumers.decode_record(key, value)
    if key is None or kind != KEY_KIND:
        return offsets.decode_record(key, value)
    try:
        read_key: GroupMetadataKey = Reader(key, 2).read(plan_of(GroupMetadataKey, 0))
        if value is None:
            return GroupRecord(read_key, None)
        version = int.from_bytes(value[:2], "big")
        if version not in GroupMetadataValue.VERSIONS:
            raise CorruptRecordError(f"a group has version {version}; {GroupMetadataValue.VERSIONS} are known")
        return GroupRecord(read_key, Reader(value, 2).read(plan_of(GroupMetadataValue, version)))
    except MalformedError as error:
        raise CorruptRecordError(f"a record of __consumer_offsets cannot be read: {error}") from None
