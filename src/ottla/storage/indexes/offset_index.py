"""Offset index of a segment: where in the file to start looking for an offset.

An entry says "the batch at this position ends with this offset". Entries are sparse, one for every
`index.interval.bytes` of log, and strictly increasing both ways; the segment's start needs none.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from pathlib import Path

from ottla.storage.indexes.index_file import SAVING, IndexFile

ENTRY_BYTES = 8


class OffsetIndex:
    """Kafka's `.index`: relative offset and position, 32 bits each, mirrored in memory."""

    __slots__ = ("_base", "_file", "_offsets", "_positions")

    def __init__(self, path: Path, base_offset: int) -> None:
        self._file = IndexFile(path, words=2)
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    def load(self, log_bytes: int) -> bool:
        """Read the file; False where it is missing, damaged, or points beyond the log: rebuild it then."""
        words = self._file.load()
        if words is None:
            return False
        offsets, positions = words[0::2], words[1::2]
        if not (is_increasing(offsets) and is_increasing(positions)):
            return False
        if offsets and (offsets[0] < 0 or positions[0] < 0 or positions[len(positions) - 1] >= log_bytes):
            return False
        self._offsets, self._positions = offsets, positions
        return True

    def append(self, last_offset: int, position: int) -> None:
        """Note the batch at `position` by its last offset."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def before(self, offset: int) -> tuple[int, int] | None:
        """Return the last entry that is not above an offset: the batch at its position contains or precedes the offset."""
        return self._entry(bisect_right(self._offsets, offset - self._base) - 1)

    def up_to(self, limit: int) -> tuple[int, int] | None:
        """Return the last entry with a position up to `limit`: a boundary between batches."""
        return self._entry(bisect_right(self._positions, limit) - 1)

    def at_or_behind(self, position: int) -> tuple[int, int] | None:
        """Return the first entry at or after a position: no batch before it reaches its offset."""
        return self._entry(bisect_left(self._positions, position))

    def _entry(self, number: int) -> tuple[int, int] | None:
        if not 0 <= number < len(self._offsets):
            return None
        return self._base + self._offsets[number], self._positions[number]

    def last(self) -> tuple[int, int]:
        """Return offset and position of the last entry; the segment's start if there is none."""
        return self._entry(len(self._offsets) - 1) or (self._base, 0)

    def truncate(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self.drop_from(bisect_left(self._offsets, offset - self._base))

    def drop_from(self, count: int) -> None:
        """Drop the entries from that number on."""
        with SAVING:  # a flush may be at it
            del self._offsets[count:]
            del self._positions[count:]
            self._file.truncate(count)

    @property
    def file(self) -> IndexFile:
        return self._file

    def clear(self) -> None:
        """Remove all entries, whatever the file contains."""
        with SAVING:  # as above
            del self._offsets[:]
            del self._positions[:]
            self._file.clear()

    def save(self, *, sync: bool = False) -> None:
        """Bring the file up to date."""
        self._file.save([self._offsets, self._positions], sync=sync)


def is_increasing(values: array[int]) -> bool:
    """Return True if each value is larger than the one before."""
    return all(map(lt, values, memoryview(values)[1:]))
