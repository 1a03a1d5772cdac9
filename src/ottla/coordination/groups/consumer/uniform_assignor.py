"""As many partitions for each member as for any other, and as few of them moved as that allows.

Where all read the same topics that is counting. Where they do not, partitions go to whoever has fewest of those that
read their topic, and move on until nobody could take one from somebody who has two more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from ottla.coordination.groups.consumer.group_spec import GroupAssignment, GroupSpec
from ottla.coordination.groups.consumer.member import TopicIdPartition


def assign_uniformly(spec: GroupSpec) -> GroupAssignment:
    alike = len(set(spec.readers.values())) <= 1
    return share_equally(spec) if alike else balance(spec)


def share_equally(spec: GroupSpec) -> GroupAssignment:
    """Among members that all read the same."""
    partitions = [partition for topic_id in sorted(spec.topics) for partition in spec.partitions(topic_id)]
    if not spec.readers:
        return {}
    quota, extra = divmod(len(partitions), len(spec.readers))
    assignment: GroupAssignment = {}
    # One more is for those who have more already, so that they need not give it up.
    # What a member keeps costs nothing; what moves is read from its last commit by somebody with a cold cache.
    had = {member_id: spec.kept(member_id) for member_id in spec.readers}
    larger = frozenset(sorted(spec.readers, key=lambda member_id: len(had[member_id]), reverse=True)[:extra])
    size = {member_id: quota + (member_id in larger) for member_id in spec.readers}
    for member_id, mine in had.items():
        assignment[member_id] = set(mine[: size[member_id]])
    taken = set().union(*assignment.values())
    free = iter([partition for partition in partitions if partition not in taken])
    for member_id, mine_now in assignment.items():
        mine_now.update(islice(free, size[member_id] - len(mine_now)))
    return assignment


def balance(spec: GroupSpec) -> GroupAssignment:
    """Among members that do not read the same."""
    assignment: GroupAssignment = {member_id: set(spec.kept(member_id)) for member_id in spec.readers}
    readers = {topic_id: spec.readers_of(topic_id) for topic_id in spec.topics}
    taken = set().union(*assignment.values())
    free = [partition for topic_id in spec.topics for partition in spec.partitions(topic_id) if partition not in taken]
    # First what few can take, so that there is room left to even it out.
    for partition in sorted(free, key=lambda partition: (len(readers[partition[0]]), partition)):
        if readers[partition[0]]:
            assignment[least(assignment, readers[partition[0]])].add(partition)
    even_out(assignment, readers)
    return assignment


def least(assignment: GroupAssignment, members: Iterable[str]) -> str:
    """Who has fewest; of several the first."""
    return min(members, key=lambda member_id: len(assignment[member_id]))


def even_out(assignment: GroupAssignment, readers: dict[UUID, list[str]]) -> None:
    """Move partitions to members that have two less, while there are any.

    Each move makes the sum of the squares of the sizes smaller, so it ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assignment, key=lambda member_id: len(assignment[member_id]), reverse=True):
            moved |= give_away(assignment, readers, member_id)


def give_away(assignment: GroupAssignment, readers: dict[UUID, list[str]], member_id: str) -> bool:
    """Hand on what a member has too much of."""
    moved = False
    for partition in sorted(assignment[member_id], reverse=True):
        other = least(assignment, readers[partition[0]])
        if len(assignment[other]) + 1 < len(assignment[member_id]):
            move(assignment, partition, member_id, other)
            moved = True
    return moved


def move(assignment: GroupAssignment, partition: TopicIdPartition, giver: str, taker: str) -> None:
    """One partition from one member to another."""
    assignment[giver].remove(partition)
    assignment[taker].add(partition)
