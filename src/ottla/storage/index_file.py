"""An index on disk: entries of big-endian 32-bit words, read and written by columns.

Kafka maps its indexes into memory and fills them entry by entry. Here the entries live in arrays, and the file
catches up at a flush, a roll or a close: whatever a crash takes with it is above the recovery point, where the
log is read again anyway.
"""

from __future__ import annotations

import os
import sys
from array import array
from pathlib import Path

WORD_BYTES = 4


class IndexFile:
    """The file of one index, and how many entries of it are known to be there."""

    __slots__ = ("path", "saved", "words")

    def __init__(self, path: Path, words: int) -> None:
        self.path = path
        self.words = words
        """32-bit words in an entry."""
        self.saved = 0
        """Entries on disk; those before it need not be written again."""

    def load(self) -> array[int] | None:
        """Every word of the file, None where it is missing or not a whole number of entries."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        if len(data) % (self.words * WORD_BYTES):
            return None
        entries = array("i", data)
        big_endian(entries)
        self.saved = len(entries) // self.words
        return entries

    def save(self, columns: list[array[int]], *, sync: bool) -> None:
        """Bring the file up to the entries that `columns` (an array for each word) hold.

        Safe beside another thread that appends to the columns, and beside another save of the same entries.
        """
        count, saved = min(map(len, columns)), self.saved
        entries = array("i", bytes(WORD_BYTES * self.words * (count - saved)))
        for word, column in enumerate(columns):
            entries[word :: self.words] = column[saved:count]
        big_endian(entries)
        entry_bytes = WORD_BYTES * self.words
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            write_all(fd, memoryview(entries).cast("B"), saved * entry_bytes)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        self.saved = count

    def truncate(self, count: int) -> None:
        """Cut off the entries from `count` on; not beside a save."""
        if count < self.saved:
            os.truncate(self.path, count * WORD_BYTES * self.words)
            self.saved = count

    def clear(self) -> None:
        """Empty the file, whatever is in it."""
        self.path.unlink(missing_ok=True)
        self.saved = 0


def write_all(fd: int, data: memoryview, position: int) -> None:
    """Write every byte at `position`, however few the system takes at a time."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, data[written:], position + written)


def big_endian(words: array[int]) -> None:
    """Turn an array between the machine's order and the file's, in place."""
    if sys.byteorder == "little":
        words.byteswap()
