"""Heartbeats, sessions that end, and members that go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.coordination.groups.classic.answers import join_refused, sync_refused
from ottla.coordination.groups.classic.draft import SESSION, ClassicDraft
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.joining import turn_away
from ottla.coordination.groups.classic.member import ClassicMember, listed
from ottla.coordination.groups.classic.notes import MemberFailed, MemberLeft
from ottla.coordination.groups.classic.rebalancing import maybe_complete_join, rebalance_or_complete_join
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.coordination.groups.classic.validation import generation_error, member_error
from ottla.coordination.groups.events import CallerGone, HeartbeatReceived, LeaveRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.leave_group import MemberIdentity

BEATS: Mapping[ClassicGroupState, int] = {
    ClassicGroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    ClassicGroupState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    ClassicGroupState.COMPLETING_REBALANCE: ErrorCode.NONE,
    ClassicGroupState.STABLE: ErrorCode.NONE,
    ClassicGroupState.DEAD: ErrorCode.UNKNOWN_MEMBER_ID,
}
"""What a member of this generation hears when it says that it lives."""


def heartbeat(draft: ClassicDraft, event: HeartbeatReceived) -> None:
    request = event.request
    error = generation_error(draft.group, request.generation_id, request.member_id, request.group_instance_id)
    if not error:
        draft.begin_session(draft.group.members[request.member_id])
    draft.reply(event.ticket, error or BEATS[draft.group.state])


def expire_session(draft: ClassicDraft, member_id: str) -> None:
    """A member was silent for too long; one that waits for an answer has no way to speak."""
    member = draft.group.members.get(member_id)
    if member is None:
        draft.group = draft.group.changed(pending=draft.group.pending - {member_id})
        if draft.group.state is ClassicGroupState.PREPARING_REBALANCE:
            maybe_complete_join(draft)
    # Who waits in a join or a sync cannot send heartbeats over that connection; it is alive as long as the connection
    # is. A new one cannot send any, so its alarm is the long one of a first join.
    elif member.is_new or not member.waits:
        draft.note(MemberFailed(draft.group.group_id, member_id))
        remove(draft, [member])
        rebalance_without_them(draft, f"{member_id} was silent for its session")


def leave(draft: ClassicDraft, event: LeaveRequested) -> None:
    """Members go, each for itself or all by an administrator's wish."""
    before = draft.group
    errors: list[int] = []
    gone: list[str] = []
    for identity in event.members:
        error, member = who_leaves(draft.group, identity)
        errors.append(error)
        if member is not None:
            remove(draft, [member])
            gone.append(member.member_id)
            reason = identity.reason or "without a reason"
            draft.note(MemberLeft(before.group_id, member.member_id, reason))
        elif not error:
            draft.group = draft.group.without(identity.member_id)
            draft.cancel(SESSION, identity.member_id)
    draft.reply(event.ticket, errors)
    if draft.group is not before:
        rebalance_without_them(draft, f"{listed(gone) or 'who was about to join'} left by LeaveGroup")


def who_leaves(group: ClassicGroup, identity: MemberIdentity) -> tuple[int, ClassicMember | None]:
    """An error, or the member that goes; neither for one that has an id and has not joined with it."""
    # An administrator names static members by their instance alone (KIP-345).
    if not identity.member_id:
        member = group.instance(identity.group_instance_id)
        return (ErrorCode.NONE if member else ErrorCode.UNKNOWN_MEMBER_ID), member
    if identity.member_id in group.pending:
        return ErrorCode.NONE, None
    error = member_error(group, identity.member_id, identity.group_instance_id)
    return error, None if error else group.members[identity.member_id]


def remove(draft: ClassicDraft, members: list[ClassicMember]) -> None:
    """Take members out, and tell those of them that wait."""
    for member in members:
        draft.reply(member.joining, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        draft.reply(member.syncing, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        draft.cancel(SESSION, member.member_id)
    draft.group = draft.group.without(*(member.member_id for member in members))


def rebalance_without_them(draft: ClassicDraft, reason: str) -> None:
    """Share out anew among those who are left, unless there was nothing shared out."""
    state = draft.group.state
    # Ids that were only pending had no part in the assignment, so a Stable group goes on without them.
    if state is ClassicGroupState.PREPARING_REBALANCE or (
        state is not ClassicGroupState.EMPTY and draft.group.members != draft.before.members
    ):
        rebalance_or_complete_join(draft, reason)


def caller_gone(draft: ClassicDraft, event: CallerGone) -> None:
    """Nobody listens at the other end any more: the member has its session to come back, a new one has nothing."""
    member = next(
        (each for each in draft.group.members.values() if event.waiting in (each.joining, each.syncing)), None
    )
    if member is None:
        return
    if member.is_new:
        turn_away(draft, member.member_id)  # nobody else knows its id
        return
    draft.group = draft.group.with_member(replace(member, joining=0, syncing=0))
    draft.begin_session(member)
