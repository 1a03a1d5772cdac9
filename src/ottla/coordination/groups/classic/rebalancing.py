"""A rebalance: all members are asked to join, and when they have, a generation begins.

prepare ──► (everybody joined, or time is up) ──► complete
"""

from __future__ import annotations

from dataclasses import replace

from ottla.coordination.groups.classic.answers import joined, sync_refused
from ottla.coordination.groups.classic.draft import JOIN, SESSION, SYNC, ClassicDraft
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import ClassicMember
from ottla.coordination.groups.classic.notes import Emptied, MembersRemoved, RebalanceStarted, Stabilized
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.errors import ErrorCode


def rebalance(draft: ClassicDraft, reason: str) -> None:
    """Begin a rebalance, or look whether the one under way is over."""
    if draft.group.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_if_all_joined(draft)
    else:
        prepare(draft, reason)


def prepare(draft: ClassicDraft, reason: str) -> None:
    """Ask all members to join."""
    group = draft.group
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        take_back_assignments(draft)
    initial = group.state is ClassicGroupState.EMPTY
    draft.cancel(SYNC)
    draft.note(RebalanceStarted(group.group_id, group.generation, reason))
    preparing = draft.group.moved(ClassicGroupState.PREPARING_REBALANCE, draft.wall_ms).changed(unsynced=frozenset())
    if not initial:
        draft.group = preparing
        draft.schedule(JOIN, preparing.rebalance_timeout)
        complete_if_all_joined(draft)
        return
    delay = draft.config.initial_rebalance_delay
    draft.group = preparing.changed(extension=max(preparing.rebalance_timeout - delay, 0.0), grown=False)
    if delay:
        draft.schedule(JOIN, delay)
    else:
        complete(draft)


def take_back_assignments(draft: ClassicDraft) -> None:
    """Send members that wait for an assignment to join again, and leave nobody with one."""
    members: dict[str, ClassicMember] = {}
    for name, member in draft.group.members.items():
        if member.syncing:
            draft.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            draft.begin_session(member)
        members[name] = replace(member, syncing=0, assignment=b"")
    draft.group = draft.group.changed(members=members)


def complete_if_all_joined(draft: ClassicDraft) -> None:
    """End the join when nobody is to be waited for; the first one of a group takes its time in any case."""
    if draft.group.extension is None and draft.group.everybody_joined:
        complete(draft)


def time_is_up(draft: ClassicDraft) -> None:
    """The time to join is over; for a new group it is put off as long as members keep coming."""
    group, delay = draft.group, draft.config.initial_rebalance_delay
    if group.state is not ClassicGroupState.PREPARING_REBALANCE:
        return
    if group.extension and group.grown:
        more = min(delay, group.extension)
        draft.group = group.changed(extension=max(group.extension - delay, 0.0), grown=False)
        draft.schedule(JOIN, more)
    else:
        complete(draft)


def complete(draft: ClassicDraft) -> None:
    """Begin a generation with those who joined; static members keep their place until their session ends."""
    draft.cancel(JOIN)
    remove_who_did_not_join(draft)
    group = draft.group
    if not group.members:
        become_empty(draft)
        return
    leader = elected_leader(group)
    if leader is None:
        # Nobody has come and nobody may be removed: their sessions will see to it.
        draft.group = group.changed(extension=None)
        draft.schedule(JOIN, group.rebalance_timeout)
        return
    begin_generation(draft, group.changed(leader=leader))


def remove_who_did_not_join(draft: ClassicDraft) -> None:
    """Take out dynamic members that have not come."""
    missing = [
        member.member_id for member in draft.group.members.values() if not member.joining and member.instance_id is None
    ]
    if missing:
        draft.group = draft.group.without(*missing)
        for member_id in missing:
            draft.cancel(SESSION, member_id)
        draft.note(MembersRemoved(draft.group.group_id, tuple(missing), "joined"))


def elected_leader(group: ClassicGroup) -> str | None:
    """The leader, if it has joined, else the first that has."""
    if group.leader is not None and group.members[group.leader].joining:
        return group.leader
    return next((name for name, member in group.members.items() if member.joining), None)


def become_empty(draft: ClassicDraft) -> None:
    """A generation without members."""
    group = draft.group.changed(generation=draft.group.generation + 1, protocol_name=None, extension=None)
    draft.group = group.moved(ClassicGroupState.EMPTY, draft.wall_ms).changed(
        topics=frozenset() if group.protocol_type else None
    )
    draft.keep()
    draft.note(Emptied(group.group_id, group.generation))


def begin_generation(draft: ClassicDraft, group: ClassicGroup) -> None:
    """Tell everybody who joined what generation it is and, the leader, who is in it."""
    protocol = group.elected_protocol()
    group = group.moved(ClassicGroupState.COMPLETING_REBALANCE, draft.wall_ms).changed(
        generation=group.generation + 1,
        protocol_name=protocol,
        topics=group.read_topics(protocol),
        unsynced=frozenset(group.members),
        extension=None,
    )
    draft.note(Stabilized(group.group_id, group.generation, len(group.members)))
    for member in group.members.values():
        draft.reply(member.joining, joined(group, member))
        draft.begin_session(member)
    answered = {name: replace(member, joining=0, newcomer=False) for name, member in group.members.items()}
    draft.group = group.changed(members=answered)
    draft.schedule(SYNC, group.rebalance_timeout)


def sync_time_is_up(draft: ClassicDraft) -> None:
    """Take out members that have not fetched their assignment in time (KIP-731's pending syncs), and begin again."""
    late = tuple(draft.group.unsynced)
    if late and draft.group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
        draft.group = draft.group.without(*late)
        for member_id in late:
            draft.cancel(SESSION, member_id)
        draft.note(MembersRemoved(draft.group.group_id, late, "synced"))
        prepare(draft, f"Removing {len(late)} members on pending sync request expiration")
