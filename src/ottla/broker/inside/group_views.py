"""Groups as their machines have them: who is there, who waits for what, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ottla.broker.inside.views import GroupView, MemberView
from ottla.coordination.groups.classic.decision import JOIN, SYNC
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.member import ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.events import AlarmName
from ottla.errors import few_of

MOST_MEMBERS = 60
MOST_NAMED = 4
SESSION = "session"
"""The alarm of either kind of group by which a silent member is out."""
Due = Callable[[AlarmName], float | None]
"""In how many milliseconds an alarm rings."""
Named = Callable[[TopicIdPartition], str]


def group_view(group: ClassicGroup | ConsumerGroup, cause: str, due: Due, named: Named) -> GroupView:
    """A group, its members in the order in which they came."""
    if isinstance(group, ClassicGroup):
        members, count = islice(classic_members(group, due), MOST_MEMBERS), len(group.members) + len(group.pending)
        epoch, protocol, leader = group.generation, group.protocol_name or "", group.leader or ""
    else:
        members, count = islice(consumer_members(group, due, named), MOST_MEMBERS), len(group.members)
        epoch, protocol, leader = group.epoch, "consumer", ""
    shown = tuple(members)
    left = due(AlarmName(JOIN, group.group_id)), due(AlarmName(SYNC, group.group_id))
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


def classic_members(group: ClassicGroup, due: Due) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(AlarmName(SESSION, group.group_id, member_id))
        waits = classic_wait(group, member)
        yield MemberView(member_id, member.client_id, member.client_host, waits, None, session)
    for member_id in sorted(group.pending):
        session = due(AlarmName(SESSION, group.group_id, member_id))
        yield MemberView(member_id, "", "", "was given this id, and is to join with it", None, session)


def classic_wait(group: ClassicGroup, member: ClassicMember) -> str:
    """What a member waits for, or is waited for."""
    if member.join_ticket:
        return "has joined, and waits for the others"
    if member.sync_ticket:
        return "waits for the leader's assignment"
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return "is to join again"
    if group.state is ClassicGroupState.COMPLETING_REBALANCE and member.member_id in group.pending_sync:
        return "is to share the partitions out" if member.member_id == group.leader else "is to ask for its part"
    return ""


def consumer_members(group: ConsumerGroup, due: Due, named: Named) -> Iterator[MemberView]:
    for member_id, member in group.members.items():
        session = due(AlarmName(SESSION, group.group_id, member_id))
        waits, has = consumer_wait(group, member, named), len(member.assigned)
        yield MemberView(member_id, member.client_id, member.client_host, waits, has, session)


def consumer_wait(group: ConsumerGroup, member: ConsumerMember, named: Named) -> str:
    """The same of a member by KIP-848."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return "is to give back " + some(sorted(map(named, member.revoking)))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        missing = [each for each in group.target(member.member_id) if each not in member.assigned]
        owners = {group.owners[each] for each in missing if each in group.owners}
        return f"waits for {some(sorted(map(named, missing)))}" + (f" of {some(sorted(owners))}" if owners else "")
    if not member.is_reconciled_to(group.assignment_epoch):
        return f"is to hear of epoch {group.assignment_epoch}"
    return ""


def some(texts: list[str]) -> str:
    """The first few of them."""
    return few_of(texts, MOST_NAMED)
