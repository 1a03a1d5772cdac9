"""Who has how much while an assignment is balanced, and who could take more.

For each topic it is known who may have it and who has how many of it: so whether things are balanced is not to be
found out by a walk over all partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.model import TopicPartition


class Holdings:
    """Owners of partitions, and their numbers."""

    def __init__(self, members: Iterable[str], takers: Mapping[str, Sequence[str]]) -> None:
        self.owner: dict[TopicPartition, str] = {}
        self.sizes = dict.fromkeys(members, 0)
        """How many each member has, of those that still take part."""
        self.takers = takers
        """The members that want each topic."""
        self._owners: dict[str, Counter[str]] = {topic: Counter() for topic in takers}
        self._suspect: str | None = None

    def give(self, tp: TopicPartition, member: str) -> None:
        """A partition without an owner gets one."""
        self.owner[tp] = member
        self.sizes[member] += 1
        self._owners[tp.topic][member] += 1

    def move(self, tp: TopicPartition, member: str) -> None:
        """A partition gets another owner."""
        old = self.owner[tp]
        self.sizes[old] -= 1
        self._owners[tp.topic][old] -= 1
        self.give(tp, member)

    def least(self, members: Iterable[str]) -> str:
        """Of these, who has the fewest; of several, the first by name."""
        return min(members, key=lambda member: (self.sizes[member], member))

    def is_balanced(self) -> bool:
        """Whether nobody could take a partition from somebody who has at least two more."""
        if max(self.sizes.values()) - min(self.sizes.values()) <= 1:
            return True
        if self._suspect is not None and self._uneven(self._suspect):
            return False
        self._suspect = next((topic for topic in self.takers if self._uneven(topic)), None)
        return self._suspect is None

    def score(self) -> int:
        """The differences between the numbers of all pairs of members; lower is more even."""
        sizes = sorted(self.sizes.values())
        return sum((2 * rank + 1 - len(sizes)) * size for rank, size in enumerate(sizes))

    def copy(self) -> Holdings:
        other = Holdings((), self.takers)
        other.owner, other.sizes = dict(self.owner), dict(self.sizes)
        other._owners = {topic: Counter(owners) for topic, owners in self._owners.items()}
        return other

    def _uneven(self, topic: str) -> bool:
        takers = self.takers[topic]
        if len(takers) < 2:
            return False
        most = max((self.sizes[owner] for owner, count in self._owners[topic].items() if count), default=0)
        return most > min(self.sizes[member] for member in takers) + 1
