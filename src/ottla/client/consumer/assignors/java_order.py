"""The order in which Java's HashMap and HashSet hand out what they hold.

In a few places Kafka's sticky assignors let that order decide. Their leader and ours take turns in a mixed group, and
only the same choice leaves partitions where they are: so it is followed here. (Java makes a tree of a bucket of eight
or more; that is left out.)
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.java_hash import java_hash
from ottla.model import TopicPartition

LEAST_BUCKETS = 16


def partition_hash(tp: TopicPartition) -> int:
    """`TopicPartition.hashCode()`, without its sign."""
    return (31 * (31 + tp.partition) + java_hash(tp.topic)) & 0xFFFFFFFF


def bucket(hashed: int, buckets: int) -> int:
    """Where among `buckets`, a power of two, a hash belongs."""
    return (hashed ^ (hashed >> 16)) & (buckets - 1)


def buckets_for(count: int, buckets: int = LEAST_BUCKETS) -> int:
    """How many buckets a map that had `buckets` has once it holds `count`: three quarters full at most."""
    while 4 * count > 3 * buckets:
        buckets *= 2
    return buckets


def in_hash_order(texts: Iterable[str]) -> list[str]:
    """As a HashMap hands its keys out that were put in as they come here."""
    keys = list(texts)
    buckets = buckets_for(len(keys))
    return sorted(keys, key=lambda text: bucket(java_hash(text), buckets))


class HashedPartitions:
    """A HashSet of partitions: as many buckets as it ever needed."""

    __slots__ = ("_buckets", "_held")

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        self._buckets = LEAST_BUCKETS

    def __len__(self) -> int:
        return len(self._held)

    def add(self, tp: TopicPartition) -> None:
        """Put it in, last in its bucket."""
        self._held[tp] = partition_hash(tp)
        self._buckets = buckets_for(len(self._held), self._buckets)

    def remove(self, tp: TopicPartition) -> None:
        del self._held[tp]

    def first(self) -> TopicPartition:
        """What an iterator hands out first."""
        return min(self._held, key=lambda tp: bucket(self._held[tp], self._buckets))
