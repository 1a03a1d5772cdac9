"""A rebalance: all members are asked to join, and when they have, a generation begins.

prepare_rebalance ──► (everybody joined, or on_join_timeout) ──► complete_join ──► (on_sync_timeout) ──► prepare_rebalance

The first rebalance of a group is another one: it has no members that could be waited for, and a fleet that starts would
rebalance once for each of its members. So it waits `group.initial.rebalance.delay.ms`, and once more each time that somebody
has come meanwhile, but in all no longer than a rebalance may take (`initial_delay_left`).
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


def rebalance_or_complete_join(draft: ClassicDraft, reason: str) -> None:
    """Begin a rebalance, or look whether the one under way is over."""
    if draft.group.state is ClassicGroupState.PREPARING_REBALANCE:
        maybe_complete_join(draft)
    else:
        prepare_rebalance(draft, reason)


def prepare_rebalance(draft: ClassicDraft, reason: str) -> None:
    """Ask all members to join."""
    group = draft.group
    # They wait for an assignment that will not come any more.
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        take_back_assignments(draft)
    initial = group.state is ClassicGroupState.EMPTY
    # Who was late for the generation that ends now is not late for the next one.
    draft.cancel(SYNC)
    draft.note(RebalanceStarted(group.group_id, group.generation, reason))
    preparing = draft.group.moved(ClassicGroupState.PREPARING_REBALANCE, draft.wall_ms).changed(
        pending_sync=frozenset()
    )
    if not initial:
        draft.group = preparing
        draft.schedule(JOIN, preparing.rebalance_timeout)
        maybe_complete_join(draft)
        return
    delay = draft.config.initial_rebalance_delay
    draft.group = preparing.changed(
        initial_delay_left=max(preparing.rebalance_timeout - delay, 0.0), has_new_member=False
    )
    if delay:
        draft.schedule(JOIN, delay)
    else:
        complete_join(draft)


def take_back_assignments(draft: ClassicDraft) -> None:
    """Send members that wait for an assignment to join again."""
    members: dict[str, ClassicMember] = {}
    for name, member in draft.group.members.items():
        if member.syncing:
            draft.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            draft.begin_session(member)
        members[name] = replace(member, syncing=0)
    draft.group = draft.group.changed(members=members)


def maybe_complete_join(draft: ClassicDraft) -> None:
    """End the join when nobody is to be waited for; the first one of a group takes its time in any case."""
    # The others of a fleet may be on their way while the first rebalance of a group is put off.
    if draft.group.initial_delay_left is None and draft.group.everybody_joined:
        complete_join(draft)


def on_join_timeout(draft: ClassicDraft) -> None:
    """The time to join is over; for a new group it is put off as long as members keep coming."""
    group, delay = draft.group, draft.config.initial_rebalance_delay
    if group.state is not ClassicGroupState.PREPARING_REBALANCE:
        return
    # Nobody has come during the last delay: then the fleet is complete, as far as one can tell.
    if group.initial_delay_left and group.has_new_member:
        more = min(delay, group.initial_delay_left)
        draft.group = group.changed(initial_delay_left=max(group.initial_delay_left - delay, 0.0), has_new_member=False)
        draft.schedule(JOIN, more)
    else:
        complete_join(draft)


def complete_join(draft: ClassicDraft) -> None:
    """Begin a generation with those who joined; static members keep their place until their session ends."""
    draft.cancel(JOIN)
    remove_who_did_not_join(draft)
    group = draft.group
    if not group.members:
        begin_empty_generation(draft)
        return
    leader = elected_leader(group)
    if leader is None:
        # Nobody has come and nobody may be removed: their sessions will see to it.
        draft.schedule(JOIN, group.rebalance_timeout)
        return
    begin_generation(draft, group.changed(leader=leader))


def remove_who_did_not_join(draft: ClassicDraft) -> None:
    """Take out dynamic members that have not come."""
    # A static member that is missing is restarted, most likely: it keeps its partitions until its session ends (KIP-345).
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
    joined = [name for name, member in group.members.items() if member.joining]
    # To keep the leader spares the members a second look at who assigns; sticky assignors have their memory there.
    return group.leader if group.leader in joined else next(iter(joined), None)


def begin_empty_generation(draft: ClassicDraft) -> None:
    group = draft.group.changed(generation=draft.group.generation + 1, protocol_name=None, initial_delay_left=None)
    draft.group = group.moved(ClassicGroupState.EMPTY, draft.wall_ms).changed(
        topics=frozenset() if group.protocol_type else None
    )
    draft.keep()
    draft.note(Emptied(group.group_id, group.generation))


def begin_generation(draft: ClassicDraft, group: ClassicGroup) -> None:
    """Tell everybody who joined what generation it is and, the leader, who is in it."""
    # Chosen anew in each generation: a fleet moves from one assignor to another by naming both for a while.
    protocol = group.elected_protocol()
    group = group.moved(ClassicGroupState.COMPLETING_REBALANCE, draft.wall_ms).changed(
        generation=group.generation + 1,
        protocol_name=protocol,
        topics=group.read_topics(protocol),
        pending_sync=frozenset(group.members),
        initial_delay_left=None,
    )
    draft.note(Stabilized(group.group_id, group.generation, len(group.members)))
    for member in group.members.values():
        draft.reply(member.joining, joined(group, member))
        draft.begin_session(member)
    answered = {name: replace(member, joining=0, is_new=False) for name, member in group.members.items()}
    draft.group = group.changed(members=answered)
    # Who has the answer and then dies is noticed by its session; who lives, and never asks for its part, by this alone.
    draft.schedule(SYNC, group.rebalance_timeout)


def on_sync_timeout(draft: ClassicDraft) -> None:
    """Take out members that have not fetched their assignment in time (KIP-731's pending syncs), and begin again."""
    # Also in a Stable group: its leader has spoken, and yet somebody may never have asked for its part, which nobody
    # reads then.
    late = tuple(draft.group.pending_sync)
    if late:
        draft.group = draft.group.without(*late)
        for member_id in late:
            draft.cancel(SESSION, member_id)
        draft.note(MembersRemoved(draft.group.group_id, late, "synced"))
        prepare_rebalance(draft, f"{len(late)} members did not ask for their part in time")
