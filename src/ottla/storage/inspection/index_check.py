"""Check that the entries of a segment's indexes lead to its batches."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from ottla.model import INT64_MAX
from ottla.storage.files.regular_file import read_whole
from ottla.storage.indexes.time_index import NO_TIMESTAMP
from ottla.storage.inspection.fault import FileFault

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
REMEDY = "a broker rebuilds the index when it reads the entry"


class Layout:
    """The positions of a segment's batches, recorded during a walk."""

    def __init__(self, *, full: bool) -> None:
        self.full = full
        """True if another segment follows."""
        self.positions = array("q")
        self.bases = array("q")
        self.lasts = array("q")
        self.times = array("q")
        self._latest = array("q")
        """The largest timestamp up to each batch, computed as needed."""
        self.end = 0
        """The position at which the walk ended."""
        self.gaps: list[range] = []
        """Positions that are part of no whole batch: entries that lead there led to the batch that was."""

    def add(self, position: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        self.positions.append(position)
        self.bases.append(base_offset)
        self.lasts.append(last_offset)
        self.times.append(max_timestamp)

    def is_damaged(self, position: int) -> bool:
        """Return True if the position is in a damaged batch."""
        return any(position in gap for gap in self.gaps)

    def is_lost(self, offset: int) -> bool:
        """Return True if the offset may have been in a damaged batch."""
        return any(self._next_base(gap.start, before=True) <= offset < self._next_base(gap.start) for gap in self.gaps)

    def _next_base(self, position: int, *, before: bool = False) -> int:
        """Return the start or end of the offsets between the batches around a position."""
        number = bisect_left(self.positions, position)
        if before:
            return self.lasts[number - 1] + 1 if number else -1
        return self.bases[number] if number < len(self.bases) else INT64_MAX

    def find_batch_at(self, position: int) -> int | None:
        """Return the number of the batch that starts at a position; None if none does."""
        number = bisect_left(self.positions, position)
        return number if number < len(self.positions) and self.positions[number] == position else None

    def find_batch_with(self, offset: int) -> int | None:
        """Return the number of the batch that contains the offset."""
        number = bisect_left(self.lasts, offset)
        return number if number < len(self.lasts) and self.bases[number] <= offset else None

    def is_later_end(self, number: int, offset: int) -> bool:
        """Return True if the offset is the last of a later batch: Kafka indexes the end of all batches that were appended together."""
        found = self.find_batch_with(offset)
        return found is not None and found > number and self.lasts[found] == offset

    def was_reached_before(self, number: int) -> bool:
        """Return True if an earlier batch has its timestamp or a later one."""
        for each in range(len(self._latest), number + 1):
            self._latest.append(max(self.times[each], self._latest[-1] if self._latest else NO_TIMESTAMP))
        return number > 0 and self._latest[number - 1] >= self.times[number]


def iter_entries(data: bytes, entry: Struct) -> list[tuple[int, int]]:
    """Pairs of numbers; the zeros at the end, for which Kafka only reserved room, are left out."""
    used = len(data.rstrip(b"\0"))
    count = min(-(-used // entry.size), len(data) // entry.size)
    return list(entry.iter_unpack(data[: count * entry.size]))


def check_offset_index(path: Path, base_offset: int, layout: Layout, *, growing: bool) -> Iterator[FileFault]:
    """Each entry points at a batch, and past none that ends before its offset. OSError where there is no file."""
    data = read_whole(path)
    if len(data) % OFFSET_ENTRY.size:
        yield FileFault(
            path, f"an index has a multiple of {OFFSET_ENTRY.size} bytes, this one has {len(data)}; {REMEDY}"
        )
    before = (-1, -1)
    for number, (relative, position) in enumerate(iter_entries(data, OFFSET_ENTRY)):
        offset, place = base_offset + relative, number * OFFSET_ENTRY.size
        found = layout.find_batch_at(position)
        if relative <= before[0] or position <= before[1]:
            yield FileFault(
                path, f"the entry is not after the one before it; {REMEDY}", place, offset, OFFSET_ENTRY.size
            )
        elif found is None:
            if not (growing and position >= layout.end) and not layout.is_damaged(position):
                reason = f"the entry points at position {position} of the log, where no whole batch begins; {REMEDY}"
                yield FileFault(path, reason, place, offset, OFFSET_ENTRY.size)
        elif offset != layout.lasts[found] and not layout.is_later_end(found, offset):
            reason = (
                f"the entry points at the batch of offsets {layout.bases[found]} to {layout.lasts[found]}; {REMEDY}"
            )
            yield FileFault(path, reason, place, offset, OFFSET_ENTRY.size)
        before = (relative, position)


def check_time_index(path: Path, base_offset: int, layout: Layout, *, growing: bool) -> Iterator[FileFault]:
    """Each entry names a batch that reaches its timestamp, and is after the one before. OSError without a file."""
    data = read_whole(path)
    if len(data) % TIME_ENTRY.size:
        yield FileFault(
            path, f"a time index has a multiple of {TIME_ENTRY.size} bytes, this one has {len(data)}; {REMEDY}"
        )
    before = (NO_TIMESTAMP - 1, -1)
    for number, (timestamp, relative) in enumerate(iter_entries(data, TIME_ENTRY)):
        offset, place = base_offset + relative, number * TIME_ENTRY.size
        found = layout.find_batch_with(offset)
        if timestamp <= before[0] or relative < before[1]:
            yield FileFault(path, f"the entry is not after the one before it; {REMEDY}", place, offset, TIME_ENTRY.size)
        elif found is None:
            behind = growing and (not layout.lasts or offset > layout.lasts[-1])
            if timestamp >= 0 and not behind and not layout.is_lost(offset):
                yield FileFault(
                    path,
                    f"the entry names an offset that no whole batch holds; {REMEDY}",
                    place,
                    offset,
                    TIME_ENTRY.size,
                )
        elif layout.times[found] != timestamp:
            reason = f"the entry has timestamp {timestamp}, its batch {layout.times[found]}; {REMEDY}"
            yield FileFault(path, reason, place, offset, TIME_ENTRY.size)
        elif layout.was_reached_before(found):
            reason = f"an earlier batch has timestamp {timestamp} or a later one; {REMEDY}"
            yield FileFault(path, reason, place, offset, TIME_ENTRY.size)
        before = (timestamp, relative)
    if layout.full:
        yield from later_than(max(before[0], NO_TIMESTAMP), path, layout)


def later_than(latest: int, path: Path, layout: Layout) -> Iterator[FileFault]:
    """Yield a fault unless the time index of a full segment ends with the largest timestamp."""
    number = next((number for number, timestamp in enumerate(layout.times) if timestamp > latest), None)
    if number is not None:
        said = f"ends with timestamp {latest}" if latest >= 0 else "has no entry"
        reason = f"the index {said}, the batch of offset {layout.bases[number]} has {layout.times[number]}"
        yield FileFault(path, f"{reason}; {REMEDY}", offset=layout.bases[number])
