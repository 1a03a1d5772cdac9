"""Views of groups: their members, and what each member waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ottla.broker.introspection.views import GroupView, MemberView
from ottla.coordination.groups.classic.decision import JOIN, SYNC
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.member import ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.events import TimerName
from ottla.coordination.groups.share.group import ShareGroup
from ottla.coordination.groups.share.share_groups import SESSION as SHARE_SESSION
from ottla.coordination.groups.streams.group import StreamsGroup
from ottla.coordination.groups.streams.member import MemberState as StreamsMemberState
from ottla.coordination.groups.streams.member import StreamsMember, Task
from ottla.coordination.groups.streams.streams_groups import SESSION as STREAMS_SESSION
from ottla.errors import few_of

MOST_MEMBERS = 60
MOST_NAMED = 4
SESSION = "session"
"""The timer that expires a member's session, in both group protocols."""
Due = Callable[[TimerName], float | None]
"""Returns the milliseconds until a timer fires; None if it is not set."""
Named = Callable[[TopicIdPartition], str]


def group_view(
    group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup, cause: str, due: Due, named: Named
) -> GroupView:
    """Return the view of a group, with its members in the order of joining."""
    if isinstance(group, ClassicGroup):
        members, count = islice(classic_members(group, due), MOST_MEMBERS), len(group.members) + len(group.pending)
        epoch, protocol, leader = group.generation, group.protocol_name or "", group.leader or ""
    elif isinstance(group, ShareGroup):
        members, count = islice(share_members(group, due), MOST_MEMBERS), len(group.members)
        epoch, protocol, leader = group.epoch, "share", ""
    elif isinstance(group, StreamsGroup):
        members, count = islice(streams_members(group, due), MOST_MEMBERS), len(group.members)
        epoch, protocol, leader = group.epoch, "streams", ""
    else:
        members, count = islice(consumer_members(group, due, named), MOST_MEMBERS), len(group.members)
        epoch, protocol, leader = group.epoch, "consumer", ""
    shown = tuple(members)
    left = due(TimerName(JOIN, group.group_id)), due(TimerName(SYNC, group.group_id))
    return GroupView(
        group.group_id,
        group.kind,
        str(group.state),
        epoch,
        protocol,
        leader,
        cause,
        next((each for each in left if each is not None), None),
        shown,
        count - len(shown),
    )


def share_members(group: ShareGroup, due: Due) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(TimerName(SHARE_SESSION, group.group_id, member_id))
        waits = "" if member.epoch == group.epoch else "has not received its assignment yet"
        yield MemberView(member_id, member.client_id, member.client_host, waits, len(member.assigned), session)


def streams_members(group: StreamsGroup, due: Due) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(TimerName(STREAMS_SESSION, group.group_id, member_id))
        waits, has = streams_wait(group, member), len(member.assigned.all)
        yield MemberView(member_id, member.client_id, member.client_host, waits, has, session)


def streams_wait(group: StreamsGroup, member: StreamsMember) -> str:
    """Return what a member of a streams group waits for."""
    if member.state is StreamsMemberState.UNREVOKED_TASKS:
        return "must revoke " + format_tasks(member.revoking.all)
    if member.state is StreamsMemberState.UNRELEASED_TASKS:
        return "waits for " + format_tasks(group.target(member.member_id).without(member.assigned).all)
    if not member.is_reconciled_to(group.assignment_epoch):
        return f"must receive epoch {group.assignment_epoch}"
    return ""


def format_tasks(tasks: frozenset[Task]) -> str:
    return format_some([f"{subtopology}_{partition}" for subtopology, partition in sorted(tasks)])


def classic_members(group: ClassicGroup, due: Due) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(TimerName(SESSION, group.group_id, member_id))
        waits = classic_wait(group, member)
        yield MemberView(member_id, member.client_id, member.client_host, waits, None, session)
    for member_id in sorted(group.pending):
        session = due(TimerName(SESSION, group.group_id, member_id))
        yield MemberView(member_id, "", "", "received this id, and must join with it", None, session)


def classic_wait(group: ClassicGroup, member: ClassicMember) -> str:
    """Return what a member waits for, or what the group waits for from it."""
    if member.join_ticket:
        return "has joined, and waits for the others"
    if member.sync_ticket:
        return "waits for the leader's assignment"
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return "must rejoin"
    if group.state is ClassicGroupState.COMPLETING_REBALANCE and member.member_id in group.pending_sync:
        return (
            "must assign the partitions"
            if member.member_id == group.leader
            else "must fetch its assignment (SyncGroup)"
        )
    return ""


def consumer_members(group: ConsumerGroup, due: Due, named: Named) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(TimerName(SESSION, group.group_id, member_id))
        waits, has = consumer_wait(group, member, named), len(member.assigned)
        yield MemberView(member_id, member.client_id, member.client_host, waits, has, session)


def consumer_wait(group: ConsumerGroup, member: ConsumerMember, named: Named) -> str:
    """Return what a member of a KIP-848 group waits for."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return "must revoke " + format_some(sorted(map(named, member.revoking)))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        missing = [each for each in group.target(member.member_id) if each not in member.assigned]
        owners = {group.owners[each] for each in missing if each in group.owners}
        return f"waits for {format_some(sorted(map(named, missing)))}" + (
            f" of {format_some(sorted(owners))}" if owners else ""
        )
    if not member.is_reconciled_to(group.assignment_epoch):
        return f"must receive epoch {group.assignment_epoch}"
    return ""


def format_some(texts: list[str]) -> str:
    """Return the first few texts, joined."""
    return few_of(texts, MOST_NAMED)
