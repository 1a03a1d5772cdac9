"""Choose the partition of records that name none. Pure: randomness is an argument."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Protocol

from ottla.errors import ConfigError
from ottla.records.murmur2 import partition_for

ANY = -1
"""The result of a partitioner that leaves the choice to the accumulator's sticky partitioner."""


class Partitioner(Protocol):
    """Chooses a partition from the record alone."""

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        """Return a partition in [0, partitions), or `ANY`."""
        ...


def choose_by_key(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    """Kafka's default: murmur2 of the key, as in all clients; `ANY` for a record without a key."""
    return ANY if key is None else partition_for(key, partitions)


def choose_any(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    """Kafka's default with `partitioner.ignore.keys`."""
    return ANY


class RoundRobinPartitioner:
    """Sends each record to the next partition, with or without a key."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        count = self._counts.get(topic, -1) + 1
        self._counts[topic] = count
        return count % partitions


ROUND_ROBIN = ("round_robin", "RoundRobinPartitioner", "org.apache.kafka.clients.producer.RoundRobinPartitioner")


def partitioner_for(choice: str | Callable[..., int] | None, *, ignore_keys: bool) -> Partitioner:
    """Return the partitioner that `partitioner.class` names."""
    if choice is None:
        return choose_any if ignore_keys else choose_by_key
    if callable(choice):
        return choice
    if choice in ROUND_ROBIN:
        return RoundRobinPartitioner()
    raise ConfigError(f"partitioner.class = {choice!r}: must be 'round_robin', a function, or omitted")


class StickyPartitioner:
    """Chooses the partition of records without a key: one until a batch is full, then another (KIP-480, KIP-794).

    The next one is random. With known queue lengths, shorter queues are more likely.
    """

    def __init__(self, batch_bytes: int, random: Random) -> None:
        self._batch_bytes = max(1, batch_bytes)
        self._random = random
        self._partition = ANY
        self._bytes = 0
        self._shares: list[int] = []
        self._choices: Sequence[int] = ()

    def current_partition(self, partitions: int) -> int:
        """Return the partition to append to."""
        if not 0 <= self._partition < partitions:
            self._switch_partition(partitions)
        return self._partition

    def count_append(self, size: int, partitions: int) -> None:
        """Count `size` bytes for the current partition; after two batch sizes switch without waiting for a full batch."""
        self._bytes += size
        if self._bytes >= 2 * self._batch_bytes:
            self._switch_partition(partitions)

    def partition_for_batch(self, partitions: int, full: bool) -> int:
        """Return the partition of a new batch; `full` is True if the last one was full, a good time to switch."""
        if full or self._bytes >= self._batch_bytes:
            self._switch_partition(partitions)
        return self.current_partition(partitions)

    def update_load(self, choices: Sequence[int], queue_sizes: Sequence[int], partitions: int) -> None:
        """Set the queue lengths of the `choices`; equal lengths make no difference."""
        if not choices or (len(choices) == partitions and len(set(queue_sizes)) == 1):
            self._choices, self._shares = (), []
            return
        most = max(queue_sizes) + 1
        self._choices = tuple(choices)
        self._shares = list(accumulate(most - size for size in queue_sizes))

    def _switch_partition(self, partitions: int) -> None:
        self._partition = self._draw_partition(partitions)
        self._bytes = 0

    def _draw_partition(self, partitions: int) -> int:
        if self._shares and max(self._choices) < partitions:
            place = self._random.randrange(self._shares[len(self._shares) - 1])
            return self._choices[bisect_right(self._shares, place)]
        return self._random.randrange(partitions)
