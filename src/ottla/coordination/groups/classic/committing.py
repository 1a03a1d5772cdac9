"""Who may commit offsets of a classic group: members in their generation, anybody while it has no members."""

from __future__ import annotations

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.coordination.groups.classic.validation import generation_error
from ottla.coordination.groups.events import OffsetsCommitted, TransactionalOffsetsCommitted
from ottla.errors import ErrorCode

NOT_FOUND_SINCE = 9
"""From this version of OffsetCommit on a client is told that there is no such group, and not that its generation is over."""


def commit_error(group: ClassicGroup | None, event: OffsetsCommitted) -> int:
    """Why these offsets are not kept. A group without members is open to everybody who claims no generation."""
    if event.generation < 0 and (group is None or group.state is ClassicGroupState.EMPTY):
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND if event.version >= NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION
    error = generation_error(group, event.generation, event.member_id, event.instance_id)
    if not error and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # It is in this generation already, and read what it commits in the last one.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def transactional_commit_error(group: ClassicGroup | None, event: TransactionalOffsetsCommitted) -> int:
    """Why these offsets may not be part of a transaction. Producers of before KIP-447 claim no membership."""
    if event.generation < 0 and not event.member_id and event.instance_id is None:
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.NONE if event.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if event.generation < 0 and group.state is ClassicGroupState.EMPTY:
        return ErrorCode.NONE
    return generation_error(group, event.generation, event.member_id, event.instance_id)
