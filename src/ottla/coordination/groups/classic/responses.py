"""JoinGroup and SyncGroup responses to members of classic groups."""

from __future__ import annotations

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicMember
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse


def join_response(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Return the response that starts a generation; the leader's has all members with their metadata."""
    members = [
        JoinGroupResponseMember(each.member_id, each.instance_id, each.metadata(group.protocol_name))
        for each in (group.members.values() if member.member_id == group.leader else ())
    ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members or (),
    )


def join_error_response(code: int, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def sync_error_response(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
