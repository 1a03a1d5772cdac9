"""The input and output of an assignor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.groups.consumer.member import TopicIdPartition

GroupAssignment = dict[str, set[TopicIdPartition]]
"""Member → what it is to have."""


class GroupSpec(Struct, frozen=True):
    """The members' subscriptions, the topics, and the previous target assignment."""

    topics: Mapping[UUID, int]
    """Topic id → number of partitions, for every topic that a member reads."""
    readers: Mapping[str, frozenset[UUID]]
    """Member → the topics it reads, in the order in which members are served."""
    before: Mapping[str, frozenset[TopicIdPartition]] = field(default_factory=dict)

    def kept(self, member_id: str) -> list[TopicIdPartition]:
        """Return the partitions of a member's previous target that it may keep, in order; a recreated topic may have fewer."""
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
