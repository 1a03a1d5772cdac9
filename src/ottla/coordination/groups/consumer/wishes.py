"""What an assignor is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ottla.coordination.groups.consumer.member import Place

Assignment = dict[str, set[Place]]
"""Member → what it is to have."""


@dataclass(frozen=True)
class Wishes:
    """What members read, what there is of it, and what each was to have until now."""

    topics: Mapping[UUID, int]
    """Topic → how many partitions it has; every topic that somebody reads."""
    readers: Mapping[str, frozenset[UUID]]
    """Member → the topics it reads, in the order in which members are served."""
    before: Mapping[str, frozenset[Place]] = field(default_factory=dict)

    def kept(self, member_id: str) -> list[Place]:
        """What a member was to have and may go on with, in order; a topic may have shrunk by being made anew."""
        reads = self.readers[member_id]
        return sorted(
            place
            for place in self.before.get(member_id, ())
            if place[0] in reads and place[1] < self.topics.get(place[0], 0)
        )

    def places(self, topic_id: UUID) -> Iterator[Place]:
        """All partitions of a topic."""
        return ((topic_id, partition) for partition in range(self.topics[topic_id]))

    def readers_of(self, topic_id: UUID) -> list[str]:
        """Who reads a topic."""
        return [member_id for member_id, topics in self.readers.items() if topic_id in topics]


Assign = Callable[[Wishes], Assignment]
