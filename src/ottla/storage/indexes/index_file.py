"""An index on disk: entries of big-endian 32-bit words, read and written by columns.

Kafka maps its indexes into memory and fills them entry by entry. Here the entries live in arrays, and the file
catches up at a flush, a roll or a close: whatever a crash takes with it is above the recovery point, where the
log is read again anyway.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from array import array
from pathlib import Path
from threading import Lock

from ottla.storage.files.open_file import write_all
from ottla.storage.files.regular_file import kind_of, open_regular, read_whole

LOG = logging.getLogger(__name__)
WORD_BYTES = 4
SAVING = Lock()
"""Two saves of one index must not interleave; one lock for all, since saves are rare and short."""


class IndexFile:
    """The file of one index, and how many entries of it are known to be there."""

    __slots__ = ("_excess", "_is_missing_logged", "_synced", "path", "retired", "saved", "words")

    def __init__(self, path: Path, words: int) -> None:
        self.path = path
        self.words = words
        """32-bit words in an entry."""
        self.saved = 0
        """Entries on disk; those before it need not be written again."""
        self._synced = 0
        """How many of them are known to outlive the machine; -1 where that is not known."""
        self.retired = False
        """True if the name belongs to another file, because compaction has put a new segment in the old one's place."""
        self._excess = False
        self._is_missing_logged = False

    def create(self) -> None:
        """Create an empty file, or truncate it: Kafka's tools expect it as soon as there is a log."""
        os.close(open_regular(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))

    def load(self) -> array[int] | None:
        """Return every word of the file; None if it is missing or not a whole number of entries."""
        try:
            data = read_whole(self.path)
        except OSError:
            return None
        if len(data) % (self.words * WORD_BYTES):
            return None
        entries = array("i", data)
        convert_byte_order(entries)
        self.saved = len(entries) // self.words
        self._synced = -1
        return entries

    def save(self, columns: list[array[int]], *, sync: bool) -> None:
        """Bring the file up to the entries that `columns` (an array for each word) hold.

        Another thread may append to the columns, or save them, at the same time.
        """
        count = min(map(len, columns))
        if not self._excess and count == self.saved and (count == self._synced or not sync) and self.path.exists():
            return  # as most flushes of a small log
        try:
            fd = open_regular(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ELOOP):
                raise
            return self._log_missing_file()  # The log has all of it: no flush and no stop fails for that.
        try:
            self._synced = -1
            with SAVING:
                self._write(fd, columns)
            if sync:
                saved = self.saved
                os.fsync(fd)
                self._synced = saved
        finally:
            os.close(fd)

    def _log_missing_file(self) -> None:
        if not self._is_missing_logged:
            LOG.error(
                "%s is %s, where a file belongs: the index is kept nowhere, and each start finds it in the log again; "
                "stop the broker and have ottla log repair move it aside",
                self.path,
                kind_of(self.path),
            )
        self._is_missing_logged = True

    def _write(self, fd: int, columns: list[array[int]]) -> None:
        if self.retired:
            return  # The name may be that of another file by now.
        saved = self.saved
        count = max(min(map(len, columns)), saved)  # Another save may have had more of them since these were taken.
        entry_bytes = WORD_BYTES * self.words
        entries = array("i", bytes(entry_bytes * (count - saved)))
        for word, column in enumerate(columns):
            entries[word :: self.words] = column[saved:count]
        convert_byte_order(entries)
        if self._excess:
            os.ftruncate(fd, saved * entry_bytes)
        self._excess = True  # until all of it is written
        write_all(fd, memoryview(entries).cast("B"), saved * entry_bytes)
        self.saved, self._excess = count, False

    def retire(self) -> None:
        """Never write again: from here on no save is under way either."""
        with SAVING:
            self.retired = True

    def truncate(self, count: int) -> None:
        """Make the next save truncate the file at entry `count`."""
        if count < self.saved:
            self.saved, self._excess = count, True

    def clear(self) -> None:
        """Make the next save truncate the file completely."""
        self.saved, self._excess = 0, True


def convert_byte_order(words: array[int]) -> None:
    """Turn an array between the machine's order and the file's, in place."""
    if sys.byteorder == "little":
        words.byteswap()
