"""The iteration order of Java's HashMap and HashSet.

Kafka's sticky assignors depend on this order in a few places. In a mixed group, Java and Ottla leaders alternate, and
only equal choices leave partitions where they are. (Java converts a bucket with eight or more entries to a tree; that
is not modelled.)
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.java_hash import java_hash
from ottla.model import TopicPartition

LEAST_BUCKETS = 16


def partition_hash(tp: TopicPartition) -> int:
    """Return `TopicPartition.hashCode()` as an unsigned number."""
    return (31 * (31 + tp.partition) + java_hash(tp.topic)) & 0xFFFFFFFF


def find_bucket(hashed: int, buckets: int) -> int:
    """Return the bucket of a hash among `buckets`, a power of two."""
    return (hashed ^ (hashed >> 16)) & (buckets - 1)


def count_buckets(count: int, buckets: int = LEAST_BUCKETS) -> int:
    """Return the number of buckets of a map with `count` entries that had `buckets` before: at most three quarters full."""
    while 4 * count > 3 * buckets:
        buckets *= 2
    return buckets


def sort_by_hash(texts: Iterable[str]) -> list[str]:
    """Return the keys in the iteration order of a HashMap with this insertion order."""
    keys = list(texts)
    buckets = count_buckets(len(keys))
    return sorted(keys, key=lambda text: find_bucket(java_hash(text), buckets))


class HashedPartitions:
    """A HashSet of partitions; the number of buckets never shrinks."""

    __slots__ = ("_buckets", "_held")

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        self._buckets = LEAST_BUCKETS

    def __len__(self) -> int:
        return len(self._held)

    def add(self, tp: TopicPartition) -> None:
        """Add a partition at the end of its bucket."""
        self._held[tp] = partition_hash(tp)
        self._buckets = count_buckets(len(self._held), self._buckets)

    def remove(self, tp: TopicPartition) -> None:
        del self._held[tp]

    def first(self) -> TopicPartition:
        """Return the first partition in iteration order."""
        return min(self._held, key=lambda tp: find_bucket(self._held[tp], self._buckets))
