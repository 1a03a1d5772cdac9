"""The assignor of share groups: equal numbers of partitions and of members, with as few moves as possible (Kafka's SimpleAssignor).

A partition may have several members. With more members than partitions each partition has ceil(members / partitions) of them. Members that
read the same topics share all partitions; otherwise the partitions of each topic are divided separately among the members that read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.groups.consumer.group_spec import GroupAssignment
from ottla.coordination.groups.consumer.member import TopicIdPartition


class ShareGroupSpec(Struct, frozen=True):
    """The input of the assignor."""

    partitions: Mapping[UUID, Sequence[int]]
    """The partitions that can be assigned, by topic, ascending."""
    readers: Mapping[str, frozenset[UUID]]
    """Member → the topics it reads, in the order in which members are served."""
    before: Mapping[str, frozenset[TopicIdPartition]] = field(default_factory=dict)
    """The previous target assignment."""


def assign_simply(spec: ShareGroupSpec) -> GroupAssignment:
    """Return the partitions of each member."""
    assignment: GroupAssignment = {member_id: set() for member_id in spec.readers}
    if len(set(spec.readers.values())) <= 1:
        divide(spec, list(spec.readers), sorted(spec.partitions), assignment)
        return assignment
    for topic_id in sorted(spec.partitions):
        divide(spec, [name for name, topics in spec.readers.items() if topic_id in topics], [topic_id], assignment)
    return assignment


def divide(spec: ShareGroupSpec, members: Sequence[str], topics: Collection[UUID], assignment: GroupAssignment) -> None:
    """Divide the partitions of these topics among members that all read them."""
    partitions = [
        (topic_id, index)
        for topic_id in topics
        if members and topic_id in spec.readers[members[0]]
        for index in spec.partitions[topic_id]
    ]
    if not partitions:
        return
    sharing = -(-len(members) // len(partitions))
    """The number of members of each partition."""
    slots = sharing * len(partitions)
    # Member i gets the slots between these two multiples, so the numbers differ by at most one.
    wanted = {
        name: -(-slots * (place + 1) // len(members)) + (-slots * place // len(members))
        for place, name in enumerate(members)
    }
    kept: dict[str, set[TopicIdPartition]] = {}
    sharers = dict.fromkeys(partitions, 0)
    for name in members:
        mine = kept[name] = set()
        before = spec.before.get(name, frozenset())
        for partition in sorted(before & sharers.keys()):
            if len(mine) < wanted[name] and sharers[partition] < sharing:
                mine.add(partition)
                sharers[partition] += 1
    unfilled = deque(name for name in members if len(kept[name]) < wanted[name])
    for partition in partitions:
        refused: list[str] = []
        while sharers[partition] < sharing and unfilled:
            name = unfilled.popleft()
            if partition in kept[name]:
                refused.append(name)
                continue
            kept[name].add(partition)
            sharers[partition] += 1
            if len(kept[name]) < wanted[name]:
                # Behind the others, so that a second slot of this partition finds another member.
                refused.append(name)
        unfilled.extend(refused)
    for name, mine in kept.items():
        assignment[name] |= mine
