"""Whether somebody is who they say: the same questions for every request of a member."""

from __future__ import annotations

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.errors import ErrorCode


def member_error(group: ClassicGroup, member_id: str, instance_id: str | None) -> int:
    """UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where another one goes by the same instance id (KIP-345)."""
    if instance_id is None:
        return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID
    known = group.instance(instance_id)
    if known is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if known.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID


def generation_error(group: ClassicGroup, generation: int, member_id: str, instance_id: str | None) -> int:
    """The same, and ILLEGAL_GENERATION for a member that has slept through a rebalance."""
    error = member_error(group, member_id, instance_id)
    if not error and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error
