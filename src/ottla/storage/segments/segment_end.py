"""The end of a segment, where batches are appended: what each append reads and changes, so that its fields are C's.

Knows no files but the open one: the rest of a segment is in `segment.py`. The one rule is that of the segment: `size` bytes of the
file are whole batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.storage.files.open_file import OpenFile
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex

if TYPE_CHECKING:
    from ottla.storage.indexes.transaction_index import TransactionIndex

UNREAD = -0x8000_0000_0000_0000
"""For the time of the first batch, where nobody has looked at that."""


class SegmentEnd:
    """Size, timestamps and indexes of a segment."""

    __slots__ = (
        "_file",
        "_offsets",
        "_times",
        "_transactions",
        "base_offset",
        "bytes_since_entry",
        "changed",
        "first_time",
        "index_interval",
        "max_timestamp",
        "max_timestamp_offset",
        "size",
        "used",
    )

    def __init__(self, base_offset: int, size: int, index_interval: int) -> None:
        self.base_offset = base_offset
        self.size = size
        self.index_interval = index_interval
        self.bytes_since_entry = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.changed = False
        """Whether there is something that a flush has not yet forced to the disk."""
        self.first_time = UNREAD
        """Largest timestamp of the first batch."""
        self.used = 0
        """When the file was last used, as `OpenFiles` counts."""
        self._file: OpenFile | None = None
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._transactions: TransactionIndex | None = None

    def indexed(self) -> bool:
        """Whether the indexes are in memory."""
        return self._offsets is not None and self._times is not None

    def account(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Account for a batch that lies at the end of the file: size, timestamps, an index entry when one is due."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_entry > self.index_interval:
            assert self._offsets is not None
            assert self._times is not None
            self._offsets.append(last_offset, self.size)
            self._times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_entry = 0
        self.bytes_since_entry += size
        self.size += size


class Savepoint:
    """Where a segment stands before an append, whose indexes are in memory: what that changes."""

    __slots__ = (
        "bytes_since_entry",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "size",
        "times",
        "transactions",
    )

    def __init__(self, segment: SegmentEnd) -> None:
        assert segment._offsets is not None
        assert segment._times is not None
        transactions = segment._transactions
        self.size = segment.size
        self.bytes_since_entry = segment.bytes_since_entry
        self.max_timestamp = segment.max_timestamp
        self.max_timestamp_offset = segment.max_timestamp_offset
        self.offsets = len(segment._offsets)
        """Entries of the index, as the next."""
        self.times = len(segment._times)
        self.transactions = None if transactions is None or not transactions.loaded else len(transactions)
        """None where the aborted transactions were not read: then they do not change either."""
