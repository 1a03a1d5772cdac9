"""The indexes of one segment: by offset, by time, and of aborted transactions.

    offset index ──┐
    time index ────┼── IndexSet ◄── add(last_offset, max_timestamp, position, size)    one call per appended batch
    transactions ──┘

The offset and the time index get an entry after every `index.interval.bytes` of batches, as Kafka's LogSegment does it. They are
loaded together, when a caller first needs one, and rebuilt together from the batches if a file is missing or damaged. The index
of aborted transactions has a file in few segments and is loaded on its own.

This module is compiled: `add` runs for each batch.
"""

from __future__ import annotations

from pathlib import Path

from ottla.storage.indexes.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex
from ottla.storage.indexes.transaction_index import TransactionIndex

OFFSET_SUFFIX = ".index"
TIME_SUFFIX = ".timeindex"
TRANSACTION_SUFFIX = ".txnindex"


class IndexSavepoint:
    """The state of loaded indexes before an append, to which a failed append is rolled back."""

    __slots__ = (
        "bytes_since_entry",
        "log_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_entries",
        "time_entries",
        "transactions",
    )

    def __init__(self, indexes: IndexSet, log_bytes: int) -> None:
        assert indexes._offsets is not None
        assert indexes._times is not None
        transactions = indexes._transactions
        self.log_bytes = log_bytes
        """The size of the log file that the indexes describe."""
        self.bytes_since_entry = indexes.bytes_since_entry
        self.max_timestamp = indexes.max_timestamp
        self.max_timestamp_offset = indexes.max_timestamp_offset
        self.offset_entries = len(indexes._offsets)
        self.time_entries = len(indexes._times)
        self.transactions = None if transactions is None or not transactions.is_loaded else len(transactions)
        """None if the aborted transactions were not read: an append reads them before it changes them."""


class IndexSet:
    """The indexes of the segment with this base offset, and the largest timestamp of its records."""

    __slots__ = (
        "_directory",
        "_offsets",
        "_suffix",
        "_times",
        "_transactions",
        "base_offset",
        "bytes_since_entry",
        "interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "unverified_times",
    )

    def __init__(self, directory: Path, base_offset: int, interval_bytes: int, suffix: str = "") -> None:
        self._directory = directory
        self._suffix = suffix
        self.base_offset = base_offset
        self.interval_bytes = interval_bytes
        self.bytes_since_entry = 0
        """Bytes of batches that were added since the last index entry."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        """The last offset of the first batch that reached `max_timestamp`."""
        self.unverified_times: int | None = None
        """Number of time index entries that were read from the file and not compared with the batches; None if there are none."""
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._transactions: TransactionIndex | None = None

    def is_loaded(self) -> bool:
        """Return True if the offset and the time index are in memory."""
        return self._offsets is not None and self._times is not None

    @property
    def offsets(self) -> OffsetIndex:
        assert self._offsets is not None
        return self._offsets

    @property
    def times(self) -> TimeIndex:
        assert self._times is not None
        return self._times

    @property
    def transactions(self) -> TransactionIndex:
        """The index of aborted transactions, which reads its file when its rows are first used."""
        if self._transactions is None:
            self._transactions = TransactionIndex(self._path(TRANSACTION_SUFFIX), self.base_offset)
        return self._transactions

    @property
    def has_no_aborted_transactions(self) -> bool:
        """True if it is known, without reading a file, that no aborted transaction ends in the segment."""
        transactions = self._transactions
        return transactions is not None and transactions.believed and transactions.is_loaded and not transactions.rows

    def add(self, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """Add a batch of `size` bytes at `position`; an entry is written if the interval is full."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_entry > self.interval_bytes:
            assert self._offsets is not None
            assert self._times is not None
            self._offsets.append(last_offset, position)
            self._times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_entry = 0
        self.bytes_since_entry += size

    def add_largest_timestamp(self) -> bool:
        """Add the entry for the largest timestamp, as before a segment is closed. Return True if it is new."""
        return self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def has_reached(self, limit_bytes: int) -> bool:
        """Return True if an index of at most `limit_bytes` has no space for the entries of another append."""
        offsets, times = self._offsets, self._times
        assert offsets is not None
        assert times is not None
        return len(offsets) >= limit_bytes // OFFSET_ENTRY_BYTES or len(times) >= limit_bytes // TIME_ENTRY_BYTES - 1

    # --- Loading and clearing ------------------------------------------------------------------------------------

    def load(self, log_bytes: int, *, trusted_below: int | None = None) -> bool:
        """Read the offset and the time index of a log file of `log_bytes`; False if a file is missing or damaged.

        Entries for offsets from `trusted_below` on are dropped.
        """
        offsets = OffsetIndex(self._path(OFFSET_SUFFIX), self.base_offset)
        times = TimeIndex(self._path(TIME_SUFFIX), self.base_offset)
        if not (offsets.load(log_bytes) and times.load()):
            return False
        if trusted_below is not None:
            truncate_both(offsets, times, trusted_below, self.base_offset)
        self._offsets, self._times, self.unverified_times = offsets, times, len(times)
        self.max_timestamp, self.max_timestamp_offset = times.last()
        return True

    def clear(self) -> None:
        """Start an empty offset and time index, whatever the files contain."""
        self._offsets = OffsetIndex(self._path(OFFSET_SUFFIX), self.base_offset)
        self._times = TimeIndex(self._path(TIME_SUFFIX), self.base_offset)
        self._offsets.clear()
        self._times.clear()
        self.unverified_times = None
        self.bytes_since_entry = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset

    def unload(self) -> None:
        """Forget the offset and the time index; the next use loads or rebuilds them."""
        self._offsets = self._times = None

    # --- Truncation and rollback ---------------------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Drop the entries from `offset` on. Batches after the last entry are to be added again."""
        offsets, times = self.offsets, self.times
        truncate_both(offsets, times, offset, self.base_offset)
        if self.unverified_times is not None:
            self.unverified_times = min(self.unverified_times, len(times))
        self.max_timestamp, self.max_timestamp_offset = times.last()
        self.bytes_since_entry = 0

    def savepoint(self, log_bytes: int) -> IndexSavepoint:
        """Return the state of the loaded indexes, and the size of the log file, for `roll_back`."""
        return IndexSavepoint(self, log_bytes)

    def roll_back(self, savepoint: IndexSavepoint) -> None:
        """Restore the state at the savepoint."""
        self.bytes_since_entry = savepoint.bytes_since_entry
        self.max_timestamp, self.max_timestamp_offset = savepoint.max_timestamp, savepoint.max_timestamp_offset
        self.offsets.drop_from(savepoint.offset_entries)
        self.times.drop_from(savepoint.time_entries)
        if savepoint.transactions is not None:
            self.transactions.drop_from(savepoint.transactions)

    # --- Files ---------------------------------------------------------------------------------------------------

    def create_files(self) -> None:
        """Create empty files for the offset and the time index, as Kafka's tools expect them next to each log file."""
        self.offsets.file.create()
        self.times.file.create()

    def save(self, *, sync: bool) -> None:
        """Write the loaded indexes to their files. May run in another thread while batches are added."""
        self.offsets.save(sync=sync)
        self.times.save(sync=sync)
        if self._transactions is not None:
            self._transactions.save(sync=sync)

    def size_on_disk(self) -> int:
        """Return the size in bytes of the larger of the offset and the time index file; 0 if there is none."""
        paths = (self._path(OFFSET_SUFFIX), self._path(TIME_SUFFIX))
        return max(path.stat().st_size if path.exists() else 0 for path in paths)

    def set_suffix(self, suffix: str) -> None:
        """Use the files that were renamed to end with `suffix`."""
        self._suffix = suffix
        if self._offsets is not None and self._times is not None:
            self._offsets.file.path, self._times.file.path = self._path(OFFSET_SUFFIX), self._path(TIME_SUFFIX)
        if self._transactions is not None:
            self._transactions.path = self._path(TRANSACTION_SUFFIX)

    def retire(self) -> None:
        """Write no file from now on: the names belong to a compacted segment."""
        if self._offsets is not None and self._times is not None:
            self._offsets.file.retire()
            self._times.file.retire()
        if self._transactions is not None:
            self._transactions.retire()

    def _path(self, kind: str) -> Path:
        return self._directory / f"{self.base_offset:020d}{kind}{self._suffix}"


def truncate_both(offsets: OffsetIndex, times: TimeIndex, offset: int, base_offset: int) -> None:
    """Drop the entries from `offset` on; the time index keeps nothing after the last entry of the offset index."""
    offsets.truncate(offset)
    times.truncate(offsets.last()[0] + 1 if len(offsets) else base_offset)
