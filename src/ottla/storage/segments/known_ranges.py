"""The ranges of a segment's file that are known to be intact, and those that are known to be damaged.

A segment that an earlier process wrote is verified piece by piece, when a reader first gets there. This module keeps the results; it
reads no file.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ottla.model import INT64_MAX
from ottla.storage.batches.damage import Damage, make_damage
from ottla.storage.batches.verified_walk import Unsound

FIRST_OFFSET = attrgetter("first_offset")
NEXT_OFFSET = attrgetter("next_offset")
OFFSET = attrgetter("offset")


class IntactRange(NamedTuple):
    """Positions between which each batch continues the one before, and their offsets."""

    start: int
    stop: int
    first_offset: int
    next_offset: int

    def without(self, damage: Damage) -> Iterator[IntactRange]:
        """Yield the parts before and after the damage."""
        end = damage.position + damage.size_bytes
        if self.start < damage.position:
            is_before = self.stop <= damage.position
            yield self if is_before else self._replace(stop=damage.position, next_offset=damage.offset)
        if end < self.stop:
            yield self if end <= self.start else self._replace(start=end, first_offset=damage.next_offset)


class KnownRanges:
    """The known ranges of one segment. Intact ranges do not overlap; neither do damages."""

    __slots__ = ("_intact", "_path", "damages", "missing")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._intact: list[IntactRange] = []
        self.damages: list[Damage] = []
        """In the order of their offsets."""
        self.missing: list[Damage] = []
        """The damage, if any, that `segment-succession` proves: lost segments after this one, or its own lost end."""

    def intact_at(self, offset: int) -> IntactRange | None:
        """Return the intact range that contains the offset."""
        number = bisect_right(self._intact, offset, key=FIRST_OFFSET) - 1
        found = self._intact[number] if number >= 0 else None
        return found if found is not None and offset < found.next_offset else None

    def intact_before(self, offset: int) -> IntactRange | None:
        """Return the last intact range that ends at or before the offset."""
        number = bisect_right(self._intact, offset, key=NEXT_OFFSET) - 1
        return self._intact[number] if number >= 0 else None

    def damage_at(self, offset: int) -> Damage | None:
        """Return the damage that contains the offset."""
        number = bisect_right(self.damages, offset, key=OFFSET) - 1
        found = self.damages[number] if number >= 0 else None
        return found if found is not None and offset < found.next_offset else None

    def expected_next_base(self, size: int, next_base: int) -> int:
        """Return the base offset that the next segment should have: `next_base`, or less if offsets are lost at the end of the file of `size` bytes."""
        last = self.damages[-1] if self.damages else None
        lost = last is not None and last.position == size and not last.size_bytes
        return last.offset if last is not None and lost and next_base < INT64_MAX else next_base

    def add_intact(self, intact: IntactRange) -> None:
        """Add an intact range and join it with those that it touches or overlaps. An empty one is ignored."""
        if intact.stop <= intact.start:
            return
        apart = []
        for each in self._intact:
            if each.stop < intact.start or intact.stop < each.start:
                apart.append(each)
            else:
                ends = max(each.stop, intact.stop), max(each.next_offset, intact.next_offset)
                begins = min(each.start, intact.start), min(each.first_offset, intact.first_offset)
                intact = IntactRange(begins[0], ends[0], begins[1], ends[1])
        self._intact = sorted([*apart, intact])

    def truncate(self, position: int, next_offset: int) -> None:
        """Forget everything from a position on, where a batch starts: the file ends there now."""
        kept = [each for each in self._intact if each.start < position]
        self._intact = [
            each if each.stop <= position else each._replace(stop=position, next_offset=next_offset) for each in kept
        ]
        self.damages = [each for each in self.damages if each.position < position]
        self.missing = []

    def add_damage(self, found: Unsound) -> Damage:
        """Add the damage that a walk over the file found, unless it is known, and return it."""
        damage = make_damage(self._path, found)
        if damage not in self.damages:
            insort(self.damages, damage, key=OFFSET)
        return damage

    def add_missing(self, found: Unsound) -> Damage:
        """Add damage that `segment-succession` proves, and return it."""
        damage = self.add_damage(found)
        self.missing = [damage]
        return damage

    def add_checksum_damage(self, damage: Damage) -> None:
        """Add damage that only a CRC shows, so that headers took it for intact. Damage that overlaps known damage is ignored."""
        if not any(damage == each or has_overlap(damage, each) for each in self.damages):
            insort(self.damages, damage, key=OFFSET)
            self._intact = [part for each in self._intact for part in each.without(damage)]


def has_overlap(one: Damage, other: Damage) -> bool:
    """Return True if an offset is in both."""
    return one.offset < other.next_offset and other.offset < one.next_offset
