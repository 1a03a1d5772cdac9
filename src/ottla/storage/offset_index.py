"""Offset index of a segment: where in the file to start looking for an offset.

An entry says "the batch at this position ends with this offset". Entries are sparse, one for every
`index.interval.bytes` of log, and strictly increasing both ways; the segment's start needs none.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from pathlib import Path

from ottla.storage.index_file import IndexFile

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
        if not (increases(offsets) and increases(positions)):
            return False
        if offsets and (offsets[0] < 0 or positions[0] < 0 or positions[-1] >= log_bytes):
            return False
        self._offsets, self._positions = offsets, positions
        return True

    def append(self, last_offset: int, position: int) -> None:
        """Note the batch at `position` by its last offset."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`; 0 at worst."""
        entry = bisect_right(self._offsets, offset - self._base)
        return self._positions[entry - 1] if entry else 0

    def position_up_to(self, limit: int) -> int:
        """The last position noted that is not beyond `limit`: a boundary between batches; 0 at worst."""
        entry = bisect_right(self._positions, limit)
        return self._positions[entry - 1] if entry else 0

    def offset_above(self, position: int) -> int | None:
        """An offset above those of all batches before `position`; None where no entry tells."""
        entry = bisect_left(self._positions, position)
        return self._base + self._offsets[entry] if entry < len(self._offsets) else None

    def last(self) -> tuple[int, int]:
        """Offset and position of the last entry; the segment's start where there is none."""
        if not self._offsets:
            return self._base, 0
        return self._base + self._offsets[-1], self._positions[-1]

    def truncate(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        count = bisect_left(self._offsets, offset - self._base)
        del self._offsets[count:]
        del self._positions[count:]
        self._file.truncate(count)

    @property
    def file(self) -> IndexFile:
        return self._file

    def clear(self) -> None:
        """Begin anew, whatever the file holds."""
        del self._offsets[:]
        del self._positions[:]
        self._file.truncate(0)

    def save(self, *, sync: bool = False) -> None:
        """Bring the file up to date."""
        self._file.save([self._offsets, self._positions], sync=sync)


def increases(values: array[int]) -> bool:
    """Whether each value is larger than the one before."""
    return all(map(lt, values, memoryview(values)[1:]))
