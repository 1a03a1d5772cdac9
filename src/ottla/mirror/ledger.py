"""How far each partition was carried, and which offset there is which here.

An entry of the ledger is a record of a compacted topic in the target, written in the transaction that carries the
records it tells of: both count or neither. The last entry of a partition is where to go on; those before it translate
offsets. They thin out with age (`slot`), so that a ledger stays small however long a mirror runs.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model import TopicPartition

PLACES = 32
"""Entries that are kept of each age, where every age is twice the one before."""


class Carried(NamedTuple):
    """What one transaction carried of one partition."""

    number: int
    """How many transactions have carried this partition, this one included."""
    source: int
    source_end: int
    """The next to read, past what is no record."""
    target: int
    target_end: int
    """Behind the last record."""
    dense: int
    """So many from the first on lie one behind the other in both: each of their offsets is known."""


class Translated(NamedTuple):
    """An offset of the target."""

    offset: int
    repeats: int
    """So many offsets at most are read again that were read in the source; nothing is left out."""


def slot(number: int) -> tuple[int, int]:
    """The place of an entry, which it takes from an older one; that of the first is never taken."""
    if number == 1:
        return -1, 0
    level = (number & -number).bit_length() - 1
    return level, (number >> (level + 1)) % PLACES


@dataclass
class PartitionLedger:
    """The entries of one partition."""

    by_slot: dict[tuple[int, int], Carried] = field(default_factory=dict)
    last: Carried | None = None

    def note(self, entry: Carried) -> None:
        """One more; also those that a start reads, in any order."""
        self.by_slot[slot(entry.number)] = entry
        if self.last is None or entry.number > self.last.number:
            self.last = entry

    def translated(self, offset: int, read_to: int) -> Translated | None:
        """Where a reader goes on in the target; None while it is ahead of the mirror, which has `read_to` there."""
        if self.last is None:
            return Translated(0, 0) if offset <= read_to else None
        entries = sorted(self.by_slot.values())
        place = bisect_right(entries, offset, key=lambda entry: entry.source)
        if place == 0:
            return Translated(entries[0].target, 0)
        entry = entries[place - 1]
        if offset >= entry.source_end:
            following = entries[place] if place < len(entries) else None
            return behind(entry, following, offset, read_to)
        known = min(offset - entry.source, entry.dense)
        return Translated(entry.target + known, offset - entry.source - known)


def behind(entry: Carried, following: Carried | None, offset: int, read_to: int) -> Translated | None:
    """Of an offset that no entry has: nothing was there to carry, or what was is told by none any longer."""
    if following is None:
        return Translated(entry.target_end, 0) if offset <= max(read_to, entry.source_end) else None
    if following.number == entry.number + 1:
        return Translated(following.target, 0)
    return Translated(entry.target_end, offset - entry.source_end)


class Ledger:
    """The entries of all partitions, by their names in the source."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionLedger] = {}

    def of(self, partition: TopicPartition) -> PartitionLedger:
        return self._partitions.setdefault(partition, PartitionLedger())

    def position(self, partition: TopicPartition) -> int | None:
        """Where to go on reading; None where nothing was carried."""
        last = self.of(partition).last
        return None if last is None else last.source_end

    def next_entry(
        self, partition: TopicPartition, offsets: Iterable[int], source_end: int, target: int, target_end: int
    ) -> Carried:
        """What the transaction that carries the records at these offsets is to write."""
        last = self.of(partition).last
        read = list(offsets)
        together = target_end - target == len(read)
        number = 1 if last is None else last.number + 1
        return Carried(number, read[0], source_end, target, target_end, dense_run(read) if together else 0)

    def note(self, partition: TopicPartition, entry: Carried) -> None:
        self.of(partition).note(entry)

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the ledger's topic."""
        if key is None or value is None:
            return
        place, told = json.loads(key), json.loads(value)
        self.note(
            TopicPartition(place["topic"], place["partition"]), Carried(*(told[name] for name in Carried._fields))
        )


def dense_run(offsets: list[int]) -> int:
    """How many from the first on follow each other without a gap."""
    first = offsets[0]
    if offsets[-1] - first == len(offsets) - 1:
        return len(offsets)
    return next(index for index, offset in enumerate(offsets) if offset != first + index)


def encoded(partition: TopicPartition, entry: Carried) -> tuple[bytes, bytes]:
    """Key and value of an entry's record."""
    place = {"topic": partition.topic, "partition": partition.partition, "slot": list(slot(entry.number))}
    return json.dumps(place).encode(), json.dumps(entry._asdict()).encode()


Read = Callable[[TopicPartition], int]
"""How far a partition of the source was read."""
