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
"""The version that Kafka writes; version 4 has the same fields in the flexible encoding."""


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
    """The members of a group and their assignment, Stable or Empty; a tombstone (no value) deletes the group."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None

    @classmethod
    def of(cls, group: ClassicGroup) -> ClassicGroupRecord:
        members = [metadata_of(member, group.protocol_name) for member in group.members.values()]
        value = GroupMetadataValue(
            group.protocol_type, group.generation, group.protocol_name, group.leader, group.changed_ms, members
        )
        return cls(GroupMetadataKey(group.group_id), value)

    @classmethod
    def tombstone(cls, group_id: str) -> ClassicGroupRecord:
        """Return the record that deletes a group."""
        return cls(GroupMetadataKey(group_id), None)


class GroupInMemory(NamedTuple):
    """A group with its held requests, as kept in memory. A blank group is removed."""

    group: ClassicGroup


def metadata_of(member: ClassicMember, protocol: str | None) -> MemberMetadata:
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
    """Return the group of a record: Stable if it has members, without held requests."""
    value = record.value
    assert value is not None, "a tombstone is no group"
    # Held requests do not survive a restart, so the group is Stable or Empty, whatever it was.
    members = {each.member_id: member_of(each, value.protocol) for each in value.members}
    group = ClassicGroup(
        record.key.group,
        ClassicGroupState.STABLE if members else ClassicGroupState.EMPTY,
        value.generation,
        value.protocol_type,
        value.protocol,
        # Kafka can write a group after its leader has left.
        value.leader if value.leader in members else next(iter(members), None),
        members,
        changed_ms=value.current_state_timestamp,
    )
    return group.changed(topics=group.subscribed_topics(value.protocol))


def member_of(kept: MemberMetadata, protocol: str | None) -> ClassicMember:
    """Return the member of a record; of its protocols only the elected one is stored."""
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
    key = encode(KEY_KIND, 0, record.key)
    return key, None if record.value is None else encode(VALUE_VERSION, VALUE_VERSION, record.value)


def decode_record(key: bytes, value: bytes | None) -> ClassicGroupRecord:
    """Decode a record. Raise CorruptRecordError if it is malformed."""
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
