"""SyncGroup: the leader brings what it gave to whom, and every member takes what it got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.coordination.groups.classic.answers import sync_refused, synced
from ottla.coordination.groups.classic.group import Group
from ottla.coordination.groups.classic.member import Member
from ottla.coordination.groups.classic.notes import Assigned
from ottla.coordination.groups.classic.state import State
from ottla.coordination.groups.classic.step import SYNC, Step
from ottla.coordination.groups.classic.validation import generation_error
from ottla.coordination.groups.events import SyncRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest


def sync(step: Step, event: SyncRequested) -> None:
    """What is to be done about a sync."""
    error = sync_error(step.group, event.request)
    if error:
        step.reply(event.ticket, sync_refused(error))
    else:
        SYNCS[step.group.state](step, event, step.group.members[event.request.member_id])


def sync_error(group: Group, request: SyncGroupRequest) -> int:
    """Why a member gets nothing."""
    error = generation_error(group, request.generation_id, request.member_id, request.group_instance_id)
    if error:
        return error
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # Between generations there is no protocol to compare with.
    if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        return ErrorCode.NONE if request.protocol_name in (None, group.protocol_name) else INCONSISTENT
    return ErrorCode.NONE


INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def wait_for_leader(step: Step, event: SyncRequested, member: Member) -> None:
    """Keep a member waiting until the leader has spoken, or hear the leader."""
    if member.syncing:  # over a connection that it has given up
        step.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
    step.group = step.group.with_member(replace(member, syncing=event.ticket))
    note_synced(step, member)
    if member.member_id == step.group.leader:
        assign(step, event)


def assign(step: Step, event: SyncRequested) -> None:
    """Keep what the leader brought, and hand it to everybody who waits for it."""
    given = {each.member_id: bytes(each.assignment) for each in event.request.assignments}
    members: dict[str, Member] = {}
    for name, waiting in step.group.members.items():
        member = replace(waiting, assignment=given.get(name, b""), syncing=0)
        members[name] = member
        if waiting.syncing:
            step.reply(waiting.syncing, synced(step.group, member))
            step.begin_session(member)
    step.group = step.group.changed(members=members).moved(State.STABLE, step.wall_ms)
    step.keep()
    static = sum(1 for member in members.values() if member.instance_id is not None)
    group, leader = step.group, event.request.member_id
    step.note(Assigned(group.group_id, group.generation, leader, len(members), static))


def hand_out(step: Step, event: SyncRequested, member: Member) -> None:
    """Give a member what is there for it already."""
    step.reply(event.ticket, synced(step.group, member))
    step.begin_session(member)
    if member.member_id in step.group.unsynced:
        note_synced(step, member)


def note_synced(step: Step, member: Member) -> None:
    """One less to be waited for."""
    step.group = step.group.changed(unsynced=step.group.unsynced - {member.member_id})
    if not step.group.unsynced:
        step.forget(SYNC)


def join_first(step: Step, event: SyncRequested, member: Member) -> None:
    """A rebalance is under way."""
    step.reply(event.ticket, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))


def not_here(step: Step, event: SyncRequested, member: Member) -> None:
    """A group without members knows nobody."""
    step.reply(event.ticket, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))


SYNCS: Mapping[State, Callable[[Step, SyncRequested, Member], None]] = {
    State.EMPTY: not_here,
    State.PREPARING_REBALANCE: join_first,
    State.COMPLETING_REBALANCE: wait_for_leader,
    State.STABLE: hand_out,
    State.DEAD: not_here,
}
"""What a sync means in each state."""
