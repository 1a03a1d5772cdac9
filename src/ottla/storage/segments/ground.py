"""What of a segment's file was seen to be sound in this run, and what was seen to be damaged.

Works on what it is told; reads nothing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ottla.model import INT64_MAX
from ottla.storage.batches.damage import Damage, damage_of
from ottla.storage.batches.sound_walk import Unsound

FIRST = attrgetter("first_offset")
OFFSET = attrgetter("offset")


class Stretch(NamedTuple):
    """Positions between which all batches fit together, and their offsets."""

    start: int
    stop: int
    first_offset: int
    next_offset: int

    def without(self, damage: Damage) -> Iterator[Stretch]:
        """What of it lies before the damage, and what behind."""
        end = damage.position + damage.size_bytes
        if self.start < damage.position:
            yield (
                self if self.stop <= damage.position else self._replace(stop=damage.position, next_offset=damage.offset)
            )
        if end < self.stop:
            yield self if end <= self.start else self._replace(start=end, first_offset=damage.next_offset)


class Ground:
    """Of one segment. Stretches do not overlap; neither do damages."""

    __slots__ = ("damages", "gone", "path", "stretches")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stretches: list[Stretch] = []
        self.damages: list[Damage] = []
        self.gone: list[Damage] = []
        """Of these the one, if any, of which it is noted that it was there: segments behind this one, or its own end."""

    def holding(self, offset: int) -> Stretch | None:
        """The stretch that an offset lies in."""
        number = bisect_right(self.stretches, offset, key=FIRST) - 1
        found = self.stretches[number] if number >= 0 else None
        return found if found is not None and offset < found.next_offset else None

    def ending_before(self, offset: int) -> Stretch | None:
        """The last stretch that ends at or before an offset."""
        number = bisect_right(self.stretches, offset, key=attrgetter("next_offset")) - 1
        return self.stretches[number] if number >= 0 else None

    def damaged(self, offset: int) -> Damage | None:
        """The damage that an offset lies in."""
        number = bisect_right(self.damages, offset, key=OFFSET) - 1
        found = self.damages[number] if number >= 0 else None
        return found if found is not None and offset < found.next_offset else None

    def followed_at(self, size: int, below: int) -> int:
        """Where the next segment is due, which begins at `below`: earlier where offsets are missing behind the last batch of the file, which has that size."""
        last = self.damages[-1] if self.damages else None
        lost = last is not None and last.position == size and not last.size_bytes
        return last.offset if last is not None and lost and below < INT64_MAX else below

    def add(self, stretch: Stretch) -> None:
        """Note what is sound, joined with the stretches that it touches or overlaps."""
        apart = []
        for each in self.stretches:
            if each.stop < stretch.start or stretch.stop < each.start:
                apart.append(each)
            else:
                ends = max(each.stop, stretch.stop), max(each.next_offset, stretch.next_offset)
                begins = min(each.start, stretch.start), min(each.first_offset, stretch.first_offset)
                stretch = Stretch(begins[0], ends[0], begins[1], ends[1])
        self.stretches = sorted([*apart, stretch])

    def cut(self, position: int, next_offset: int) -> None:
        """Forget what lies from a position on, a boundary: the file ends there now."""
        kept = [each for each in self.stretches if each.start < position]
        self.stretches = [
            each if each.stop <= position else each._replace(stop=position, next_offset=next_offset) for each in kept
        ]
        self.damages = [each for each in self.damages if each.position < position]
        self.gone = []

    def add_damage(self, found: Unsound) -> Damage:
        """Note what a walk could not believe, once."""
        damage = damage_of(self.path, found)
        if damage not in self.damages:
            insort(self.damages, damage, key=OFFSET)
        return damage

    def believe(self, damage: Damage) -> None:
        """Note damage that only a CRC tells of: what headers let pass for sound is not, there. What is known already stays."""
        if not any(damage == each or overlap(damage, each) for each in self.damages):
            insort(self.damages, damage, key=OFFSET)
            self.stretches = [part for each in self.stretches for part in each.without(damage)]


def overlap(one: Damage, other: Damage) -> bool:
    """Whether some offset lies in both."""
    return one.offset < other.next_offset and other.offset < one.next_offset
