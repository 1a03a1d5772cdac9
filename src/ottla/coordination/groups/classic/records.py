"""The records of classic groups, in Kafka's schemas.

`GroupInMemory` is no record of the log: it carries what dies with the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.serde import encode
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


class ClassicGroupRecord(NamedTuple):
    """A group's members and their assignment, Stable or Empty; without a value the group is no more."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None

    @classmethod
    def of(cls, group: ClassicGroup) -> ClassicGroupRecord:
        """A group as the log keeps it."""
        members = [metadata_of(member, group.protocol_name) for member in group.members.values()]
        value = GroupMetadataValue(
            group.protocol_type, group.generation, group.protocol_name, group.leader, group.changed_ms, members
        )
        return cls(GroupMetadataKey(group.group_id), value)

    @classmethod
    def tombstone(cls, group_id: str) -> ClassicGroupRecord:
        """What takes a group away."""
        return cls(GroupMetadataKey(group_id), None)


class GroupInMemory(NamedTuple):
    """A group as it is in memory, with everybody who waits; one that is blank is forgotten."""

    group: ClassicGroup


def metadata_of(member: ClassicMember, protocol: str | None) -> MemberMetadata:
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


def group_of(record: ClassicGroupRecord) -> ClassicGroup:
    """A group as it comes back from the log: with members it is Stable, and nobody waits."""
    value = record.value
    assert value is not None, "a tombstone is no group"
    # Nobody can wait across a restart, so what comes back is Stable or Empty, whatever it was.
    members = {each.member_id: member_of(each, value.protocol) for each in value.members}
    group = ClassicGroup(
        record.key.group,
        ClassicGroupState.STABLE if members else ClassicGroupState.EMPTY,
        value.generation,
        value.protocol_type,
        value.protocol,
        # Kafka can write a group whose leader has left.
        value.leader if value.leader in members else next(iter(members), None),
        members,
        changed_ms=value.current_state_timestamp,
    )
    return group.changed(topics=group.subscribed_topics(value.protocol))


def member_of(kept: MemberMetadata, protocol: str | None) -> ClassicMember:
    """A member as it comes back; of its protocols only the one that was chosen is known."""
    return ClassicMember(
        kept.member_id,
        kept.group_instance_id,
        kept.client_id,
        kept.client_host,
        kept.rebalance_timeout if kept.rebalance_timeout >= 0 else kept.session_timeout,
        kept.session_timeout,
        ((protocol or "", kept.subscription),),
        kept.assignment,
    )


def encode_record(record: ClassicGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value as bytes."""
    key = encode(KEY_KIND, 0, record.key)
    return key, None if record.value is None else encode(VALUE_VERSION, VALUE_VERSION, record.value)


def decode_record(key: bytes, value: bytes | None) -> ClassicGroupRecord:
    """A record of the log; CorruptRecordError where it cannot be read."""
    try:
        read_key: GroupMetadataKey = Reader(key, 2).read(plan_of(GroupMetadataKey, 0))
        if value is None:
            return ClassicGroupRecord(read_key, None)
        version = int.from_bytes(value[:2], "big")
        if version not in GroupMetadataValue.VERSIONS:
            raise CorruptRecordError(f"a group has version {version}; {GroupMetadataValue.VERSIONS} are known")
        return ClassicGroupRecord(read_key, Reader(value, 2).read(plan_of(GroupMetadataValue, version)))
    except MalformedError as error:
        raise CorruptRecordError(f"a record of __consumer_offsets cannot be read: {error}") from None
