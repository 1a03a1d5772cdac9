"""The copied offsets of each partition, and the translation of source offsets to target offsets.

 A ledger entry is a record of a compacted topic in the target, written in the same transaction as the records that it
describes. The last entry of a partition is the position to continue at; earlier entries translate offsets. Their
density decreases with age (`slot_of`), so that a ledger stays small in a long run.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model import TopicPartition

PLACES = 32
"""The number of entries kept per age class; each class covers twice the range of the previous one."""


class LedgerEntry(NamedTuple):
    """The records that one transaction copied from one partition."""

    number: int
    """The number of transactions that have copied from this partition, including this one."""
    source: int
    source_end: int
    """The next offset to read, after control records and gaps."""
    target: int
    target_end: int
    """The offset after the last record."""
    dense: int
    """The number of records from the first on without gaps in both clusters; their offsets can be translated exactly.
    """


class Translated(NamedTuple):
    """An offset in the target."""

    offset: int
    repeats: int
    """The maximum number of records that are read again; none is skipped."""


def slot_of(number: int) -> tuple[int, int]:
    """Return the slot of an entry, which overwrites an older entry there; the slot of the first entry is never reused."""
    if number == 1:
        return -1, 0
    level = (number & -number).bit_length() - 1
    return level, (number >> (level + 1)) % PLACES


@dataclass
class PartitionLedger:
    """The entries of one partition."""

    by_slot: dict[tuple[int, int], LedgerEntry] = field(default_factory=dict)
    last: LedgerEntry | None = None

    def add(self, entry: LedgerEntry) -> None:
        """Add an entry; entries may be added in any order."""
        self.by_slot[slot_of(entry.number)] = entry
        if self.last is None or entry.number > self.last.number:
            self.last = entry

    def translate(self, offset: int, read_to: int) -> Translated | None:
        """Return the offset in the target; None if `offset` is ahead of the mirror, which has read to `read_to`."""
        if self.last is None:
            return Translated(0, 0) if offset <= read_to else None
        entries = sorted(self.by_slot.values())
        place = bisect_right(entries, offset, key=lambda entry: entry.source)
        if place == 0:
            return Translated(entries[0].target, 0)
        entry = entries[place - 1]
        if offset >= entry.source_end:
            following = entries[place] if place < len(entries) else None
            return translate_gap(entry, following, offset, read_to)
        known = min(offset - entry.source, entry.dense)
        return Translated(entry.target + known, offset - entry.source - known)


def translate_gap(entry: LedgerEntry, following: LedgerEntry | None, offset: int, read_to: int) -> Translated | None:
    """Translate an offset between two entries: there were no records, or their entry was overwritten."""
    if following is None:
        return Translated(entry.target_end, 0) if offset <= max(read_to, entry.source_end) else None
    if following.number == entry.number + 1:
        return Translated(following.target, 0)
    return Translated(entry.target_end, offset - entry.source_end)


class Ledger:
    """The entries of all partitions by their names in the source."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionLedger] = {}

    def for_partition(self, partition: TopicPartition) -> PartitionLedger:
        return self._partitions.setdefault(partition, PartitionLedger())

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset to continue at; None if nothing was copied."""
        last = self.for_partition(partition).last
        return None if last is None else last.source_end

    def next_entry(
        self, partition: TopicPartition, offsets: Iterable[int], source_end: int, target: int, target_end: int
    ) -> LedgerEntry:
        """Return the entry for a transaction that copies the records at these offsets."""
        last = self.for_partition(partition).last
        read = list(offsets)
        together = target_end - target == len(read)
        number = 1 if last is None else last.number + 1
        return LedgerEntry(number, read[0], source_end, target, target_end, dense_run(read) if together else 0)

    def add(self, partition: TopicPartition, entry: LedgerEntry) -> None:
        self.for_partition(partition).add(entry)

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Add the entry of a record of the ledger's topic."""
        if key is None or value is None:
            return
        place, fields = json.loads(key), json.loads(value)
        self.add(
            TopicPartition(place["topic"], place["partition"]),
            LedgerEntry(*(fields[name] for name in LedgerEntry._fields)),
        )


def dense_run(offsets: list[int]) -> int:
    """Return the number of offsets from the first on without a gap."""
    first = offsets[0]
    if offsets[-1] - first == len(offsets) - 1:
        return len(offsets)
    return next(index for index, offset in enumerate(offsets) if offset != first + index)


def encode_entry(partition: TopicPartition, entry: LedgerEntry) -> tuple[bytes, bytes]:
    """Return key and value of an entry's record."""
    place = {"topic": partition.topic, "partition": partition.partition, "slot": list(slot_of(entry.number))}
    return json.dumps(place).encode(), json.dumps(entry._asdict()).encode()


Read = Callable[[TopicPartition], int]
"""Returns the position of the consumer in a partition of the source."""
