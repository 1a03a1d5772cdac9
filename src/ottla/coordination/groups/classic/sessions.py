"""Heartbeats, sessions that end, and members that go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.coordination.groups.classic.answers import join_refused, sync_refused
from ottla.coordination.groups.classic.group import Group
from ottla.coordination.groups.classic.joining import turn_away
from ottla.coordination.groups.classic.member import Member, listed
from ottla.coordination.groups.classic.notes import MemberFailed, MemberLeft
from ottla.coordination.groups.classic.rebalancing import complete_if_all_joined, rebalance
from ottla.coordination.groups.classic.state import State
from ottla.coordination.groups.classic.step import SESSION, Step
from ottla.coordination.groups.classic.validation import generation_error, member_error
from ottla.coordination.groups.events import CallerGone, HeartbeatReceived, LeaveRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.leave_group import MemberIdentity

BEATS: Mapping[State, int] = {
    State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    State.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    State.COMPLETING_REBALANCE: ErrorCode.NONE,
    State.STABLE: ErrorCode.NONE,
    State.DEAD: ErrorCode.UNKNOWN_MEMBER_ID,
}
"""What a member of this generation hears when it says that it lives."""


def beat(step: Step, event: HeartbeatReceived) -> None:
    """A member lives."""
    request = event.request
    error = generation_error(step.group, request.generation_id, request.member_id, request.group_instance_id)
    if not error:
        step.begin_session(step.group.members[request.member_id])
    step.reply(event.ticket, error or BEATS[step.group.state])


def end_session(step: Step, member_id: str) -> None:
    """A member was silent for too long; one that waits for an answer has no way to speak."""
    member = step.group.members.get(member_id)
    if member is None:
        step.group = step.group.changed(pending=step.group.pending - {member_id})
        if step.group.state is State.PREPARING_REBALANCE:
            complete_if_all_joined(step)
    elif member.newcomer or not member.waits:
        step.note(MemberFailed(step.group.group_id, member_id))
        remove(step, [member])
        go_on(step, f"removing member {member_id} on heartbeat expiration.")


def leave(step: Step, event: LeaveRequested) -> None:
    """Members go, each for itself or all by an administrator's wish."""
    before = step.group
    errors: list[int] = []
    gone: list[str] = []
    for identity in event.members:
        error, member = who_leaves(step.group, identity)
        errors.append(error)
        if member is not None:
            remove(step, [member])
            gone.append(member.member_id)
            reason = identity.reason or "not provided"
            step.note(MemberLeft(before.group_id, member.member_id, reason))
        elif not error:
            step.group = step.group.without(identity.member_id)
            step.forget(SESSION, identity.member_id)
    step.reply(event.ticket, errors)
    if step.group is not before:
        go_on(step, f"explicit `LeaveGroup` request for ({listed(gone)}) members.")


def who_leaves(group: Group, identity: MemberIdentity) -> tuple[int, Member | None]:
    """An error, or the member that goes; neither for one that has an id and has not joined with it."""
    if not identity.member_id:
        member = group.instance(identity.group_instance_id)
        return (ErrorCode.NONE if member else ErrorCode.UNKNOWN_MEMBER_ID), member
    if identity.member_id in group.pending:
        return ErrorCode.NONE, None
    error = member_error(group, identity.member_id, identity.group_instance_id)
    return error, None if error else group.members[identity.member_id]


def remove(step: Step, members: list[Member]) -> None:
    """Take members out, and tell those of them that wait."""
    for member in members:
        step.reply(member.joining, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        step.reply(member.syncing, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        step.forget(SESSION, member.member_id)
    step.group = step.group.without(*(member.member_id for member in members))


def go_on(step: Step, reason: str) -> None:
    """Share out anew among those who are left, unless there was nothing shared out."""
    state = step.group.state
    if state is State.PREPARING_REBALANCE or (state is not State.EMPTY and step.group.members != step.before.members):
        rebalance(step, reason)


def caller_gone(step: Step, event: CallerGone) -> None:
    """Nobody listens at the other end any more: the member has its session to come back, a new one has nothing."""
    member = next((each for each in step.group.members.values() if event.waiting in (each.joining, each.syncing)), None)
    if member is None:
        return
    if member.newcomer:
        turn_away(step, member.member_id)  # nobody else knows its id
        return
    step.group = step.group.with_member(replace(member, joining=0, syncing=0))
    step.begin_session(member)
