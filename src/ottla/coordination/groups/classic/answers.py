"""What the coordinator says to members."""

from __future__ import annotations

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import ClassicMember
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse


def joined(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Welcome to this generation; the leader is told of everybody."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=join_members(group) if member.member_id == group.leader else (),
    )


def join_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """All members, with what they said for the chosen protocol."""
    return [
        JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(group.protocol_name))
        for member in group.members.values()
    ]


def join_refused(code: int, member_id: str = "") -> JoinGroupResponse:
    """No member of a generation."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """What the leader gave to a member."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def sync_refused(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
