"""The uniform assignor: the same number of partitions for each member, with as few moves as possible.

If all members read the same topics, counting is enough. If they do not, each partition is assigned to the member with the fewest partitions
among those that read its topic, and partitions are moved until no member could take one from a member that has two more.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from itertools import islice
from uuid import UUID

from ottla.coordination.groups.consumer.group_spec import GroupAssignment, GroupSpec
from ottla.coordination.groups.consumer.member import TopicIdPartition


def assign_uniformly(spec: GroupSpec) -> GroupAssignment:
    alike = len(set(spec.readers.values())) <= 1
    return share_equally(spec) if alike else assign_balanced(spec)


def share_equally(spec: GroupSpec) -> GroupAssignment:
    """Among members that all read the same."""
    partitions = [partition for topic_id in sorted(spec.topics) for partition in spec.partitions(topic_id)]
    if not spec.readers:
        return {}
    quota, extra = divmod(len(partitions), len(spec.readers))
    assignment: GroupAssignment = {}
    # A partition that stays costs nothing; one that moves is read from its last commit by a member with a cold cache. So the members
    # with the most partitions get the extra ones.
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


def assign_balanced(spec: GroupSpec) -> GroupAssignment:
    """Among members that do not read the same."""
    assignment: GroupAssignment = {member_id: set(spec.kept(member_id)) for member_id in spec.readers}
    taken = set().union(*assignment.values())
    free = [partition for topic_id in spec.topics for partition in spec.partitions(topic_id) if partition not in taken]
    loads = MemberLoads(spec, assignment)
    # First what few can take, so that there is room left to even it out.
    for partition in sorted(free, key=lambda partition: (loads.count_readers(partition[0]), partition)):
        if loads.count_readers(partition[0]):
            assignment[loads.find_least(partition[0])].add(partition)
    even_out(assignment, loads)
    return assignment


class MemberLoads:
    """The reader with the fewest partitions, for each topic; the first one of several.

    Topics with the same readers share a heap of (size, reader). A member's size may have increased since its entry was pushed: the entry is
    corrected when it reaches the top. After a size has decreased, `shrunk` pushes another entry. A heap therefore always has an entry
    of each reader that is not greater than its size, and a search takes logarithmic time.
    """

    def __init__(self, spec: GroupSpec, assignment: GroupAssignment) -> None:
        self._assignment = assignment
        self._order = {member_id: place for place, member_id in enumerate(spec.readers)}
        self._members = list(spec.readers)
        readers: dict[UUID, list[int]] = {topic_id: [] for topic_id in spec.topics}
        for member_id, topics in spec.readers.items():
            for topic_id in topics & readers.keys():
                readers[topic_id].append(self._order[member_id])
        shared: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        self._readers = {topic_id: len(places) for topic_id, places in readers.items()}
        self._heaps = {topic_id: shared.setdefault(tuple(places), []) for topic_id, places in readers.items()}
        self._heaps_of: dict[int, list[list[tuple[int, int]]]] = {}
        for places, heap in shared.items():
            heap.extend(sorted((self._size(place), place) for place in places))
            for place in places:
                self._heaps_of.setdefault(place, []).append(heap)

    def count_readers(self, topic_id: UUID) -> int:
        return self._readers[topic_id]

    def find_least(self, topic_id: UUID) -> str:
        """Return the reader of a topic that has the fewest partitions."""
        heap = self._heaps[topic_id]
        while True:
            size, place = heap[0]
            actual = self._size(place)
            if actual == size:
                return self._members[place]
            heapreplace(heap, (actual, place))

    def shrunk(self, member_id: str) -> None:
        """Take note that a member has fewer partitions than before."""
        place = self._order[member_id]
        for heap in self._heaps_of.get(place, ()):
            heappush(heap, (self._size(place), place))

    def _size(self, place: int) -> int:
        return len(self._assignment[self._members[place]])


def even_out(assignment: GroupAssignment, loads: MemberLoads) -> None:
    """Move partitions to members that have two less, while there are any.

    Each move makes the sum of the squares of the sizes smaller, so it ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assignment, key=lambda member_id: len(assignment[member_id]), reverse=True):
            moved |= move_one_away(assignment, loads, member_id)


def move_one_away(assignment: GroupAssignment, loads: MemberLoads, member_id: str) -> bool:
    """Move partitions that a member has too many of to others."""
    moved = False
    for partition in sorted(assignment[member_id], reverse=True):
        other = loads.find_least(partition[0])
        if len(assignment[other]) + 1 < len(assignment[member_id]):
            move_partition(assignment, partition, member_id, other)
            moved = True
    if moved:
        loads.shrunk(member_id)
    return moved


def move_partition(assignment: GroupAssignment, partition: TopicIdPartition, giver: str, taker: str) -> None:
    """One partition from one member to another."""
    assignment[giver].remove(partition)
    assignment[taker].add(partition)
