"""SyncGroup: the leader brings what it gave to whom, and every member takes what it got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.coordination.groups.classic.answers import sync_refused, synced
from ottla.coordination.groups.classic.draft import SYNC, ClassicDraft
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import ClassicMember
from ottla.coordination.groups.classic.notes import Assigned
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.coordination.groups.classic.validation import generation_error
from ottla.coordination.groups.events import SyncRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest


def sync(draft: ClassicDraft, event: SyncRequested) -> None:
    """What is to be done about a sync."""
    error = sync_error(draft.group, event.request)
    if error:
        draft.reply(event.ticket, sync_refused(error))
    else:
        SYNCS[draft.group.state](draft, event, draft.group.members[event.request.member_id])


def sync_error(group: ClassicGroup, request: SyncGroupRequest) -> int:
    """Why a member gets nothing."""
    error = generation_error(group, request.generation_id, request.member_id, request.group_instance_id)
    if error:
        return error
    # Clients from KIP-559 on say by which protocol they believe to be assigned.
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # Between generations there is no protocol to compare with.
    if group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
        return ErrorCode.NONE if request.protocol_name in (None, group.protocol_name) else INCONSISTENT
    return ErrorCode.NONE


INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def wait_for_leader(draft: ClassicDraft, event: SyncRequested, member: ClassicMember) -> None:
    """Keep a member waiting until the leader has spoken, or hear the leader."""
    if member.syncing:  # over a connection that it has given up
        draft.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
    draft.group = draft.group.with_member(replace(member, syncing=event.ticket))
    note_synced(draft, member)
    if member.member_id == draft.group.leader:
        assign(draft, event)


def assign(draft: ClassicDraft, event: SyncRequested) -> None:
    """Keep what the leader brought, and hand it to everybody who waits for it."""
    # The leader may name members that have gone since, and leave out such as have come: the first are passed over,
    # the others have nothing.
    given = {each.member_id: bytes(each.assignment) for each in event.request.assignments}
    members: dict[str, ClassicMember] = {}
    for name, waiting in draft.group.members.items():
        member = replace(waiting, assignment=given.get(name, b""), syncing=0)
        members[name] = member
        if waiting.syncing:
            draft.reply(waiting.syncing, synced(draft.group, member))
            draft.begin_session(member)
    draft.group = draft.group.changed(members=members).moved(ClassicGroupState.STABLE, draft.wall_ms)
    draft.keep()
    static = sum(1 for member in members.values() if member.instance_id is not None)
    group, leader = draft.group, event.request.member_id
    draft.note(Assigned(group.group_id, group.generation, leader, len(members), static))


def hand_out(draft: ClassicDraft, event: SyncRequested, member: ClassicMember) -> None:
    """Give a member what is there for it already."""
    draft.reply(event.ticket, synced(draft.group, member))
    draft.begin_session(member)
    # In a Stable group who has synced before may do so again, as after a lost answer, and counts once.
    if member.member_id in draft.group.pending_sync:
        note_synced(draft, member)


def note_synced(draft: ClassicDraft, member: ClassicMember) -> None:
    """One less to be waited for."""
    draft.group = draft.group.changed(pending_sync=draft.group.pending_sync - {member.member_id})
    if not draft.group.pending_sync:
        draft.cancel(SYNC)


def join_first(draft: ClassicDraft, event: SyncRequested, member: ClassicMember) -> None:
    """A rebalance is under way."""
    draft.reply(event.ticket, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))


def not_here(draft: ClassicDraft, event: SyncRequested, member: ClassicMember) -> None:
    """A group without members knows nobody."""
    draft.reply(event.ticket, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))


SYNCS: Mapping[ClassicGroupState, Callable[[ClassicDraft, SyncRequested, ClassicMember], None]] = {
    ClassicGroupState.EMPTY: not_here,
    ClassicGroupState.PREPARING_REBALANCE: join_first,
    ClassicGroupState.COMPLETING_REBALANCE: wait_for_leader,
    ClassicGroupState.STABLE: hand_out,
    ClassicGroupState.DEAD: not_here,
}
"""What a sync means in each state."""
