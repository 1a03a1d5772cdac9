"""Who decides the partition of a record that names none.

Pure: chance comes in as an argument.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Protocol

from ottla.errors import ConfigError
from ottla.records.murmur2 import partition_for

ANY = -1
"""The answer of a partitioner that leaves the choice to the accumulator's sticky one."""


class Partitioner(Protocol):
    """Chooses by the record alone."""

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        """A partition in [0, partitions), or `ANY`."""
        ...


def by_key(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    """Kafka's own: murmur2 of the key, the same for every client; a record without a key goes anywhere."""
    return ANY if key is None else partition_for(key, partitions)


def anywhere(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    """Kafka's own with `partitioner.ignore.keys`."""
    return ANY


class RoundRobinPartitioner:
    """Each record to the next partition, keyed or not."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        count = self._counts.get(topic, -1) + 1
        self._counts[topic] = count
        return count % partitions


ROUND_ROBIN = ("round_robin", "RoundRobinPartitioner", "org.apache.kafka.clients.producer.RoundRobinPartitioner")


def partitioner_for(choice: str | Callable[..., int] | None, *, ignore_keys: bool) -> Partitioner:
    """The partitioner that `partitioner.class` names."""
    if choice is None:
        return anywhere if ignore_keys else by_key
    if callable(choice):
        return choice
    if choice in ROUND_ROBIN:
        return RoundRobinPartitioner()
    raise ConfigError(f"partitioner.class = {choice!r}: must be 'round_robin', a function, or left out")


class StickyPartitioner:
    """Where records without a key go: one partition until a batch is full, then another (KIP-480, KIP-794).

    The next one is drawn at random; with loads known, the more likely the shorter the partition's queue.
    """

    def __init__(self, batch_bytes: int, random: Random) -> None:
        self._batch_bytes = max(1, batch_bytes)
        self._random = random
        self._partition = ANY
        self._bytes = 0
        self._shares: list[int] = []
        self._choices: Sequence[int] = ()

    def current(self, partitions: int) -> int:
        """The partition to append to now."""
        if not 0 <= self._partition < partitions:
            self._switch(partitions)
        return self._partition

    def appended(self, size: int, partitions: int) -> None:
        """`size` bytes went to the current partition; after twice a batch there is no more waiting for a good moment."""
        self._bytes += size
        if self._bytes >= 2 * self._batch_bytes:
            self._switch(partitions)

    def new_batch(self, partitions: int, full: bool) -> int:
        """The partition of a batch that must be begun, the last one being `full` or sent: the moment to switch."""
        if full or self._bytes >= self._batch_bytes:
            self._switch(partitions)
        return self.current(partitions)

    def update_load(self, choices: Sequence[int], queue_sizes: Sequence[int], partitions: int) -> None:
        """Learn how many batches wait for each of the `choices`; where that tells nothing apart, any will do."""
        if not choices or (len(choices) == partitions and len(set(queue_sizes)) == 1):
            self._choices, self._shares = (), []
            return
        most = max(queue_sizes) + 1
        self._choices = tuple(choices)
        self._shares = list(accumulate(most - size for size in queue_sizes))

    def _switch(self, partitions: int) -> None:
        self._partition = self._draw(partitions)
        self._bytes = 0

    def _draw(self, partitions: int) -> int:
        if self._shares and max(self._choices) < partitions:
            place = self._random.randrange(self._shares[len(self._shares) - 1])
            return self._choices[bisect_right(self._shares, place)]
        return self._random.randrange(partitions)
