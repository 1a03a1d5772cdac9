"""A rebalance: all members are asked to join, and when they have, a generation begins.

prepare ──► (everybody joined, or time is up) ──► complete
"""

from __future__ import annotations

from dataclasses import replace

from ottla.coordination.groups.classic.answers import joined, sync_refused
from ottla.coordination.groups.classic.group import Group
from ottla.coordination.groups.classic.member import Member
from ottla.coordination.groups.classic.notes import Emptied, MembersRemoved, RebalanceStarted, Stabilized
from ottla.coordination.groups.classic.state import State
from ottla.coordination.groups.classic.step import JOIN, SESSION, SYNC, Step
from ottla.errors import ErrorCode


def rebalance(step: Step, reason: str) -> None:
    """Begin a rebalance, or look whether the one under way is over."""
    if step.group.state is State.PREPARING_REBALANCE:
        complete_if_all_joined(step)
    else:
        prepare(step, reason)


def prepare(step: Step, reason: str) -> None:
    """Ask all members to join."""
    group = step.group
    if group.state is State.COMPLETING_REBALANCE:
        take_back_assignments(step)
    initial = group.state is State.EMPTY
    step.forget(SYNC)
    step.note(RebalanceStarted(group.group_id, group.generation, reason))
    preparing = step.group.moved(State.PREPARING_REBALANCE, step.wall_ms).changed(unsynced=frozenset())
    if not initial:
        step.group = preparing
        step.wake(JOIN, preparing.rebalance_timeout)
        complete_if_all_joined(step)
        return
    delay = step.config.initial_rebalance_delay
    step.group = preparing.changed(extension=max(preparing.rebalance_timeout - delay, 0.0), grown=False)
    if delay:
        step.wake(JOIN, delay)
    else:
        complete(step)


def take_back_assignments(step: Step) -> None:
    """Send members that wait for an assignment to join again, and leave nobody with one."""
    members: dict[str, Member] = {}
    for name, member in step.group.members.items():
        if member.syncing:
            step.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            step.begin_session(member)
        members[name] = replace(member, syncing=0, assignment=b"")
    step.group = step.group.changed(members=members)


def complete_if_all_joined(step: Step) -> None:
    """End the join when nobody is to be waited for; the first one of a group takes its time in any case."""
    if step.group.extension is None and step.group.everybody_joined:
        complete(step)


def time_is_up(step: Step) -> None:
    """The time to join is over; for a new group it is put off as long as members keep coming."""
    group, delay = step.group, step.config.initial_rebalance_delay
    if group.state is not State.PREPARING_REBALANCE:
        return
    if group.extension and group.grown:
        more = min(delay, group.extension)
        step.group = group.changed(extension=max(group.extension - delay, 0.0), grown=False)
        step.wake(JOIN, more)
    else:
        complete(step)


def complete(step: Step) -> None:
    """Begin a generation with those who joined; static members keep their place until their session ends."""
    step.forget(JOIN)
    remove_who_did_not_join(step)
    group = step.group
    if not group.members:
        become_empty(step)
        return
    leader = elected_leader(group)
    if leader is None:
        # Nobody has come and nobody may be removed: their sessions will see to it.
        step.group = group.changed(extension=None)
        step.wake(JOIN, group.rebalance_timeout)
        return
    begin_generation(step, group.changed(leader=leader))


def remove_who_did_not_join(step: Step) -> None:
    """Take out dynamic members that have not come."""
    missing = [
        member.member_id for member in step.group.members.values() if not member.joining and member.instance_id is None
    ]
    if missing:
        step.group = step.group.without(*missing)
        for member_id in missing:
            step.forget(SESSION, member_id)
        step.note(MembersRemoved(step.group.group_id, tuple(missing), "joined"))


def elected_leader(group: Group) -> str | None:
    """The leader, if it has joined, else the first that has."""
    if group.leader is not None and group.members[group.leader].joining:
        return group.leader
    return next((name for name, member in group.members.items() if member.joining), None)


def become_empty(step: Step) -> None:
    """A generation without members."""
    group = step.group.changed(generation=step.group.generation + 1, protocol_name=None, extension=None)
    step.group = group.moved(State.EMPTY, step.wall_ms).changed(topics=frozenset() if group.protocol_type else None)
    step.keep()
    step.note(Emptied(group.group_id, group.generation))


def begin_generation(step: Step, group: Group) -> None:
    """Tell everybody who joined what generation it is and, the leader, who is in it."""
    protocol = group.elected_protocol()
    group = group.moved(State.COMPLETING_REBALANCE, step.wall_ms).changed(
        generation=group.generation + 1,
        protocol_name=protocol,
        topics=group.read_topics(protocol),
        unsynced=frozenset(group.members),
        extension=None,
    )
    step.note(Stabilized(group.group_id, group.generation, len(group.members)))
    for member in group.members.values():
        step.reply(member.joining, joined(group, member))
        step.begin_session(member)
    told = {name: replace(member, joining=0, newcomer=False) for name, member in group.members.items()}
    step.group = group.changed(members=told)
    step.wake(SYNC, group.rebalance_timeout)


def sync_time_is_up(step: Step) -> None:
    """Take out members that have not fetched their assignment in time (KIP-731's pending syncs), and begin again."""
    late = tuple(step.group.unsynced)
    if late and step.group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        step.group = step.group.without(*late)
        for member_id in late:
            step.forget(SESSION, member_id)
        step.note(MembersRemoved(step.group.group_id, late, "synced"))
        prepare(step, f"Removing {len(late)} members on pending sync request expiration")
