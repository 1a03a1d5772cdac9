"""The moves of partitions between members while an assignment is balanced.

Moving a partition of a topic from A to B and another of the same topic from B to A would be two moves without effect.
If a partition was moved in the opposite direction before, that one is moved back instead.
"""

from __future__ import annotations

from ottla.client.consumer.assignors.java_order import HashedPartitions
from ottla.model import TopicPartition

Pair = tuple[str, str]


class Movements:
    """The moves so far; each partition has one, from its first owner to its last."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, Pair] = {}
        self._moved: dict[tuple[str, Pair], HashedPartitions] = {}

    def choose_partition(self, tp: TopicPartition, old: str, new: str) -> TopicPartition:
        """Return the partition to move from `old` to `new` instead of `tp`, or `tp` itself."""
        first_owner = self._pairs[tp][0] if tp in self._pairs else old
        reverse = self._moved.get((tp.topic, (new, first_owner)))
        return reverse.first() if reverse is not None else tp

    def record_move(self, tp: TopicPartition, old: str, new: str) -> None:
        pair = self._pairs.pop(tp, None)
        if pair is not None:
            self._remove(tp, pair)
            old = pair[0]
        if old != new:
            self._pairs[tp] = (old, new)
            self._moved.setdefault((tp.topic, (old, new)), HashedPartitions()).add(tp)

    def _remove(self, tp: TopicPartition, pair: Pair) -> None:
        moved = self._moved[tp.topic, pair]
        moved.remove(tp)
        if not moved:
            del self._moved[tp.topic, pair]
