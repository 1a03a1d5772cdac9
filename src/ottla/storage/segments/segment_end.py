"""The fields of a segment that each append reads and changes, as C fields of a compiled class; `segment.py` has the methods."""

from __future__ import annotations

from pathlib import Path

from ottla.storage.files.open_file import OpenFile
from ottla.storage.indexes.index_set import IndexSet

UNREAD = -0x8000_0000_0000_0000
"""The value of `first_time` before the first batch was read."""


class SegmentEnd:
    """The end of a segment, where batches are appended."""

    __slots__ = ("_file", "base_offset", "changed", "first_time", "indexes", "size", "used")

    def __init__(self, directory: Path, base_offset: int, size: int, index_interval: int, suffix: str) -> None:
        self.base_offset = base_offset
        self.size = size
        """Bytes of the file that are whole batches; a failed write may have left others after them."""
        self.indexes = IndexSet(directory, base_offset, index_interval, suffix)
        """The indexes, perhaps not loaded yet; `Segment.load_indexes` returns them loaded."""
        self.changed = False
        """True if a flush has anything to force to the disk."""
        self.first_time = UNREAD
        """The largest timestamp of the first batch."""
        self.used = 0
        """The value of `OpenFiles.opened` when the file was last used."""
        self._file: OpenFile | None = None

    def account(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Account for a batch that was written to the end of the file. The indexes are loaded."""
        self.indexes.add(last_offset, max_timestamp, self.size, size)
        self.size += size
