"""The range assignor: of each topic, every member gets a run of neighbouring partitions.

So the same numbers of topics with as many partitions go to the same member, and records of one key meet there. Where
racks are told and matter, members get partitions with a replica in their rack as far as the counts allow; the counts
stay those of the plain way (KIP-881).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscription,
    by_instance,
    partition_counts,
)
from ottla.client.consumer.assignors.racks import PartitionRacks, member_racks, partition_racks, racks_matter
from ottla.client.metadata.cluster import Cluster
from ottla.model import TopicPartition

NOWHERE: frozenset[str] = frozenset()


class RangeAssignor:
    """Runs of partitions, topic by topic."""

    name = "range"
    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """It remembers nothing."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        racks = member_racks(subscriptions)
        places = partition_racks(cluster, counts) if racks else {}
        ordered = sorted(subscriptions, key=lambda member: by_instance(member, subscriptions[member]))
        wanted = {member: frozenset(subscriptions[member].topics) for member in ordered}
        topics = [
            TopicRanges(topic, count, [m for m in ordered if topic in wanted[m]], racks, places)
            for topic, count in counts.items()
        ]
        if any(topic.racks_matter for topic in topics):
            assign_by_rack(topics)
        for topic in topics:
            topic.assign_ranges(by_rack=False)
        given: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for topic in topics:
            for member, numbers in topic.given.items():
                given[member] += [TopicPartition(topic.name, number) for number in sorted(numbers)]
        return {member: Assignment(partitions) for member, partitions in given.items()}


class TopicRanges:
    """One topic's partitions while they are given out."""

    def __init__(
        self, name: str, count: int, members: Sequence[str], racks: Mapping[str, str], places: PartitionRacks
    ) -> None:
        self.name = name
        self.count = count
        self.members = members
        """Those that want it, in order."""
        self.given: dict[str, list[int]] = {member: [] for member in members}
        self._racks = racks
        self._places = [places.get(TopicPartition(name, number), NOWHERE) for number in range(count)]
        self._left = dict.fromkeys(range(count))
        self._least, self._extra = divmod(count, len(members)) if members else (0, 0)
        near = {racks[member] for member in members if member in racks}
        self.racks_matter = racks_matter(near, {TopicPartition(name, n): at for n, at in enumerate(self._places)})

    def is_near(self, member: str, number: int) -> bool:
        """Whether the member's rack has a replica; one that tells no rack is near to all."""
        rack = self._racks.get(member)
        return rack is None or rack in self._places[number]

    def room(self, member: str) -> int:
        """How many more the member may have."""
        return max(0, self._least + (self._extra > 0) - len(self.given[member]))

    def give(self, member: str, numbers: Sequence[int]) -> None:
        self.given[member] += numbers
        # As one step, for all that are given at once: one member takes at most one of the extra places.
        self._extra -= len(self.given[member]) > self._least
        for number in numbers:
            del self._left[number]

    def assign_ranges(self, *, by_rack: bool) -> None:
        """Give each member what it has room for, of what is left; all of that, or what is near to it."""
        for member in self.members:
            free = [number for number in self._left if not by_rack or self.is_near(member, number)]
            mine = free[: self.room(member)]
            if mine:
                self.give(member, mine)


def assign_by_rack(topics: Sequence[TopicRanges]) -> None:
    """Give out what can be given to somebody near; topics of the same members and count are kept together."""
    alike: dict[tuple[tuple[str, ...], int], list[TopicRanges]] = {}
    for topic in topics:
        alike.setdefault((tuple(topic.members), topic.count), []).append(topic)
    for together in alike.values():
        if len(together) > 1:
            assign_together(together)
        elif together[0].racks_matter:
            together[0].assign_ranges(by_rack=True)


def assign_together(topics: Sequence[TopicRanges]) -> None:
    """Give each number to one member for all of the topics, where somebody is near to all of them."""
    remaining = list(topics[0].members)
    for number in range(topics[0].count):
        member = next((m for m in remaining if all(t.is_near(m, number) and t.room(m) for t in topics)), None)
        if member is not None:
            for topic in topics:
                topic.give(member, [number])
            if not any(topic.room(member) for topic in topics):
                remaining.remove(member)
