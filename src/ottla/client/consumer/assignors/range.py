"""The range assignor: each member gets a range of consecutive partitions of each topic.

The same partition numbers of topics with equal partition counts go to the same member, so records of one key meet
there. If racks are known and make a difference, members get partitions with a replica in their rack as far as the
counts allow; the counts stay the same (KIP-881).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscription,
    instance_sort_key,
    partition_counts,
)
from ottla.client.consumer.assignors.racks import PartitionRacks, is_rack_aware, member_racks, partition_racks
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition

NOWHERE: frozenset[str] = frozenset()


class RangeAssignor:
    """Consecutive partitions, topic by topic."""

    name = "range"
    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Do nothing: the assignor has no state."""

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        racks = member_racks(subscriptions)
        places = partition_racks(cluster, counts) if racks else {}
        ordered = sorted(subscriptions, key=lambda member: instance_sort_key(member, subscriptions[member]))
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
    """The partitions of one topic during the assignment."""

    def __init__(
        self, name: str, count: int, members: Sequence[str], racks: Mapping[str, str], places: PartitionRacks
    ) -> None:
        self.name = name
        self.count = count
        self.members = members
        """The subscribers in order."""
        self.given: dict[str, list[int]] = {member: [] for member in members}
        self._racks = racks
        self._places = [places.get(TopicPartition(name, number), NOWHERE) for number in range(count)]
        self._left = dict.fromkeys(range(count))
        self._least, self._extra = divmod(count, len(members)) if members else (0, 0)
        near = {racks[member] for member in members if member in racks}
        self.racks_matter = is_rack_aware(near, {TopicPartition(name, n): at for n, at in enumerate(self._places)})

    def is_near(self, member: str, number: int) -> bool:
        """Return True if a replica is in the member's rack, or the member has none."""
        rack = self._racks.get(member)
        return rack is None or rack in self._places[number]

    def remaining_quota(self, member: str) -> int:
        """Return how many more partitions the member may get."""
        return max(0, self._least + (self._extra > 0) - len(self.given[member]))

    def assign_numbers(self, member: str, numbers: Sequence[int]) -> None:
        self.given[member] += numbers
        # Once per call: a member takes at most one of the extra partitions.
        self._extra -= len(self.given[member]) > self._least
        for number in numbers:
            del self._left[number]

    def assign_ranges(self, *, by_rack: bool) -> None:
        """Give each member the partitions it may still get, with `by_rack` only near ones."""
        for member in self.members:
            free = [number for number in self._left if not by_rack or self.is_near(member, number)]
            mine = free[: self.remaining_quota(member)]
            if mine:
                self.assign_numbers(member, mine)


def assign_by_rack(topics: Sequence[TopicRanges]) -> None:
    """Assign partitions to near members. Topics with equal members and partition counts are assigned together."""
    alike: dict[tuple[tuple[str, ...], int], list[TopicRanges]] = {}
    for topic in topics:
        alike.setdefault((tuple(topic.members), topic.count), []).append(topic)
    for together in alike.values():
        if len(together) > 1:
            assign_together(together)
        elif together[0].racks_matter:
            together[0].assign_ranges(by_rack=True)


def assign_together(topics: Sequence[TopicRanges]) -> None:
    """Assign each partition number to one member for all topics, if a member is near to all of them."""
    remaining = list(topics[0].members)
    for number in range(topics[0].count):
        member = next(
            (m for m in remaining if all(t.is_near(m, number) and t.remaining_quota(m) for t in topics)), None
        )
        if member is not None:
            for topic in topics:
                topic.assign_numbers(member, [number])
            if not any(topic.remaining_quota(member) for topic in topics):
                remaining.remove(member)
