"""The owners and partition counts while an assignment is balanced.

For each topic it stores the subscribers and the number of partitions per owner, so that checking the balance needs no
pass over all partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.model import TopicPartition


class Holdings:
    """Owners of partitions, and the number of partitions of each member."""

    def __init__(self, members: Iterable[str], subscribers: Mapping[str, Sequence[str]]) -> None:
        self.owner: dict[TopicPartition, str] = {}
        self.sizes = dict.fromkeys(members, 0)
        """The number of partitions of each member that still takes part."""
        self.subscribers = subscribers
        """The members subscribed to each topic."""
        self._owners: dict[str, Counter[str]] = {topic: Counter() for topic in subscribers}
        self._suspect: str | None = None

    def assign_partition(self, tp: TopicPartition, member: str) -> None:
        """Assign a partition without an owner."""
        self.owner[tp] = member
        self.sizes[member] += 1
        self._owners[tp.topic][member] += 1

    def move_partition(self, tp: TopicPartition, member: str) -> None:
        """Move a partition to another owner."""
        old = self.owner[tp]
        self.sizes[old] -= 1
        self._owners[tp.topic][old] -= 1
        self.assign_partition(tp, member)

    def least_loaded(self, members: Iterable[str]) -> str:
        """Return the member with the fewest partitions; of several, the first by name."""
        return min(members, key=lambda member: (self.sizes[member], member))

    def is_balanced(self) -> bool:
        """Return True if no subscriber could take a partition from a member with at least two more."""
        if max(self.sizes.values()) - min(self.sizes.values()) <= 1:
            return True
        if self._suspect is not None and self._is_uneven(self._suspect):
            return False
        self._suspect = next((topic for topic in self.subscribers if self._is_uneven(topic)), None)
        return self._suspect is None

    def score(self) -> int:
        """Return the sum of the differences of all pairs of members; lower is more even."""
        sizes = sorted(self.sizes.values())
        return sum((2 * rank + 1 - len(sizes)) * size for rank, size in enumerate(sizes))

    def copy(self) -> Holdings:
        other = Holdings((), self.subscribers)
        other.owner, other.sizes = dict(self.owner), dict(self.sizes)
        other._owners = {topic: Counter(owners) for topic, owners in self._owners.items()}
        return other

    def _is_uneven(self, topic: str) -> bool:
        takers = self.subscribers[topic]
        if len(takers) < 2:
            return False
        most = max((self.sizes[owner] for owner, count in self._owners[topic].items() if count), default=0)
        return most > min(self.sizes[member] for member in takers) + 1
