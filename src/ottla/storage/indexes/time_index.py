"""Time index of a segment: from which offset on to look for a timestamp.

An entry says "up to this offset no record is later than this timestamp, and the batch that ends with the offset
is the first that reaches it". Timestamps strictly increase; offsets do not decrease.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import le
from pathlib import Path

from ottla.storage.indexes.index_file import SAVING, IndexFile
from ottla.storage.indexes.offset_index import is_increasing

ENTRY_BYTES = 12
NO_TIMESTAMP = -1


class TimeIndex:
    """Kafka's `.timeindex`: timestamp in 64 bits, relative offset in 32, mirrored in memory."""

    __slots__ = ("_base", "_file", "_offsets", "_timestamps")

    def __init__(self, path: Path, base_offset: int) -> None:
        self._file = IndexFile(path, words=3)
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    def load(self) -> bool:
        """Read the file; False where it is missing or damaged: rebuild it then."""
        words = self._file.load()
        if words is None:
            return False
        timestamps, offsets = join_halves(words[0::3], words[1::3]), words[2::3]
        if offsets and offsets[0] < 0:
            return False
        if not (is_increasing(timestamps) and all(map(le, offsets, memoryview(offsets)[1:]))):
            return False
        self._timestamps, self._offsets = timestamps, offsets
        return True

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Note that `timestamp` was reached by the batch that ends with `offset`, if it is news."""
        if timestamp <= self.last()[0]:
            return False
        self._timestamps.append(timestamp)
        self._offsets.append(offset - self._base)
        return True

    def before(self, timestamp: int) -> int:
        """Return the number of the last entry that is not above a timestamp: no record before its offset is later; -1 if there is none."""
        return bisect_right(self._timestamps, timestamp) - 1

    def entry(self, number: int) -> tuple[int, int]:
        """Return the timestamp of an entry, and the last offset of the batch that first reached it."""
        return self._timestamps[number], self._base + self._offsets[number]

    def last(self) -> tuple[int, int]:
        """Return the largest timestamp and its offset."""
        count = len(self._timestamps)
        return self.entry(count - 1) if count else (NO_TIMESTAMP, self._base)

    def truncate(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self.drop_from(bisect_left(self._offsets, offset - self._base))

    def drop_from(self, count: int) -> None:
        """Drop the entries from that number on."""
        with SAVING:  # a flush may be at it
            del self._offsets[count:]
            del self._timestamps[count:]
            self._file.truncate(count)

    @property
    def file(self) -> IndexFile:
        return self._file

    def clear(self) -> None:
        """Remove all entries, whatever the file contains."""
        with SAVING:  # as above
            del self._timestamps[:]
            del self._offsets[:]
            self._file.clear()

    def save(self, *, sync: bool = False) -> None:
        """Bring the file up to date."""
        high, low = split_halves(self._timestamps)
        self._file.save([high, low, self._offsets], sync=sync)


def join_halves(high: array[int], low: array[int]) -> array[int]:
    """64-bit numbers from their 32-bit halves."""
    words = array("i", bytes(8 * len(high)))
    first, second = (low, high) if sys.byteorder == "little" else (high, low)
    words[0::2], words[1::2] = first, second
    return array("q", words.tobytes())


def split_halves(numbers: array[int]) -> tuple[array[int], array[int]]:
    """Return the high and the low 32 bits of 64-bit numbers."""
    words = array("i", numbers.tobytes())
    return (words[1::2], words[0::2]) if sys.byteorder == "little" else (words[0::2], words[1::2])
