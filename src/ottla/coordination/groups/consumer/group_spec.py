"""What an assignor is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.groups.consumer.member import TopicIdPartition

GroupAssignment = dict[str, set[TopicIdPartition]]
"""Member → what it is to have."""


class GroupSpec(Struct, frozen=True):
    """What members read, what there is of it, and what each was to have until now."""

    topics: Mapping[UUID, int]
    """Topic → how many partitions it has; every topic that somebody reads."""
    readers: Mapping[str, frozenset[UUID]]
    """Member → the topics it reads, in the order in which members are served."""
    before: Mapping[str, frozenset[TopicIdPartition]] = field(default_factory=dict)

    def kept(self, member_id: str) -> list[TopicIdPartition]:
        """What a member was to have and may go on with, in order; a topic may have shrunk by being made anew."""
        reads = self.readers[member_id]
        return sorted(
            partition
            for partition in self.before.get(member_id, ())
            if partition[0] in reads and partition[1] < self.topics.get(partition[0], 0)
        )

    def partitions(self, topic_id: UUID) -> Iterator[TopicIdPartition]:
        """All partitions of a topic."""
        return ((topic_id, partition) for partition in range(self.topics[topic_id]))

    def readers_of(self, topic_id: UUID) -> list[str]:
        return [member_id for member_id, topics in self.readers.items() if topic_id in topics]


PartitionAssignor = Callable[[GroupSpec], GroupAssignment]
