"""One segment of a log: a file of record batches with its indexes (Kafka's LogSegment).

    0               own_position            size
    │ of earlier     │ appended by this      │ left by a failed
    │ processes      │ process               │ write
    └ verified when  └ trusted
      first read

The rule: the first `size` bytes of the file are whole batches, whatever a failed write left after them.

**Trust.** Batches that this process appended are read as they are. Those of earlier processes are verified by their headers, once,
when a reader first gets there (`KnownRanges`): a disk may have changed them. A reader that reaches damage gets DamagedLogError.
Indexes only lead to batches: an entry is compared with its batch before it is used, and indexes that do not match are rebuilt.

**Flushing.** Linux reports pages that it could not write once, and counts them as written afterwards: the next `fsync` succeeds without
them. So after a failed `fsync` the batches that were never forced are read again, checked by their CRCs and written again.

Files are opened when they are first used, and indexes read when they are first needed. Methods block on the disk. A segment
belongs to the thread of its log; `flush` may run in another thread during appends.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ottla.errors import CorruptRecordError
from ottla.model import INT64_MAX, Buffer, FileSlice, OffsetAndTimestamp, TimestampType
from ottla.records.batch import MAGIC, BatchHeader
from ottla.storage.batches.batch_run import BatchRun
from ottla.storage.batches.damage import DamagedLogError, make_damage
from ottla.storage.batches.scan import HEAD, SCAN_BLOCK, ScanWindow, find_end, find_offset, read_header, scan
from ottla.storage.batches.verified_walk import (
    Bounds,
    Unsound,
    VerifiedBatch,
    is_whole,
    walk_by_checksums,
    walk_by_headers,
)
from ottla.storage.files.open_file import OpenFile, write_all
from ottla.storage.files.open_files import OPEN_FILES
from ottla.storage.files.storage_error import storage_error
from ottla.storage.indexes.index_set import (
    OFFSET_SUFFIX,
    TIME_SUFFIX,
    TRANSACTION_SUFFIX,
    IndexSavepoint,
    IndexSet,
)
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.segments.known_ranges import IntactRange, KnownRanges
from ottla.storage.segments.segment_end import UNREAD, SegmentEnd

LOG = logging.getLogger(__name__)
LOG_SUFFIX = ".log"
FILES = (LOG_SUFFIX, OFFSET_SUFFIX, TIME_SUFFIX, TRANSACTION_SUFFIX)
TAIL_BYTES = 2048
"""The largest append that is kept in memory for waiting consumers; each log that is written to keeps one."""
TIME_CHECK_BYTES = 128 * 1024
"""Bytes of the log that are compared with the end of a time index: some milliseconds if each batch is one small record."""


class Segment(SegmentEnd):
    """The batches from `base_offset` up to the next segment."""

    __slots__ = (
        "__weakref__",
        "_forced",
        "_index_rebuild_failed",
        "_is_torn",
        "_own_offset",
        "_own_position",
        "_tail",
        "_tail_offset",
        "_tail_position",
        "directory",
        "doubted",
        "epochs",
        "next_base",
        "ranges",
        "rebuilt",
        "suffix",
    )

    # --- Creating and opening ------------------------------------------------------------------------------------

    def __init__(self, directory: Path, base_offset: int, size: int, index_interval: int, suffix: str = "") -> None:
        super().__init__(directory, base_offset, size, index_interval, suffix)
        self.directory = directory
        self.suffix = suffix
        """The end of the file names until compaction has put the segment in its place."""
        self.next_base = INT64_MAX
        """The base offset of the next segment."""
        self.epochs: Callable[[], Sequence[tuple[int, int]]] = tuple
        """Returns the leader epochs of the log with their start offsets."""
        self.ranges = KnownRanges(self.path)
        """The verified ranges and the damages before `_own_position`."""
        self.rebuilt = False
        """True if the indexes were rebuilt from the batches, and not read from their files."""
        self.doubted = False
        """True if forcing the file to the disk failed: the batches from `_forced` on must be written again."""
        self._forced = 0
        """Bytes that are known to be on the disk."""
        self._own_position = self._own_offset = INT64_MAX
        """The start of the batches that this process appended."""
        self._tail_offset, self._tail_position, self._tail = INT64_MAX, 0, b""
        """The first offset of the last append, its position, and its bytes if they are few."""
        self._is_torn = False
        """True if the file may have more than `size` bytes."""
        self._index_rebuild_failed = False

    @classmethod
    def create(cls, directory: Path, base_offset: int, index_interval: int, suffix: str = "") -> Segment:
        """Create an empty segment and its files."""
        segment = cls(directory, base_offset, 0, index_interval, suffix)
        segment.indexes.clear()
        segment.indexes.create_files()
        # The log file is created last: a start removes index files without one.
        segment._file = OPEN_FILES.open(segment, segment.path, create=True)
        segment.transactions.clear()
        segment._own_position, segment._own_offset = 0, base_offset
        segment.changed = True
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    @property
    def path(self) -> Path:
        return self.file_path(LOG_SUFFIX)

    def file_path(self, kind: str) -> Path:
        """Return the path of the file with that ending, one of `FILES`."""
        return self.directory / f"{self.base_offset:020d}{kind}{self.suffix}"

    @property
    def file(self) -> OpenFile:
        """The open log file; a reference keeps its bytes readable, even after `delete` or `release`."""
        file = self._file
        if file is None:
            file = self._file = OPEN_FILES.open(self, self.path)
        self.used = OPEN_FILES.opened
        return file

    def writable_file(self) -> OpenFile:
        """Return the log file, opened again if it was read-only before; OSError if it still is."""
        file = self.file
        if not file.writable:
            file = self._file = OPEN_FILES.open(self, self.path, write=True)
        return file

    def release(self) -> None:
        """Close the file until it is used again."""
        if self._file is not None:
            OPEN_FILES.remove(self)
            self._file = None

    def drop_file(self) -> None:
        """Close the file for `OPEN_FILES`, unless its name is about to change."""
        if not self.suffix:
            self._file = None

    def trust_appended(self, end_offset: int) -> None:
        """Trust the batches that are appended from now on, at the log's end."""
        self._own_position, self._own_offset = self.size, end_offset

    def distrust(self) -> None:
        """Verify all batches when they are read, also those that this process appended."""
        self._own_position = self._own_offset = INT64_MAX

    @property
    def is_damaged(self) -> bool:
        """True if damage is known. Nothing is appended to a damaged segment."""
        return bool(self.ranges.damages)

    # --- Appending -----------------------------------------------------------------------------------------------

    def append(self, data: memoryview, headers: Iterable[BatchHeader]) -> None:
        """Append batches that have their offsets already."""
        self.write(data)
        for header in headers:
            self.add_batch(header)
        self.changed = True

    def write(self, data: memoryview) -> None:
        """Write bytes after the last batch; they become part of the segment when they are accounted for.

        If the write fails, the file and the state are as before, and KafkaError(KAFKA_STORAGE_ERROR) is raised.
        """
        try:
            file = self._file  # held, so that no other thread closes it to free a descriptor
            if file is None or not file.writable:
                file = self.writable_file()
            self.used = OPEN_FILES.opened
            write_all(file.fileno(), data, self.size)
            if data:
                # The offset is set first: a reader between the two statements starts too early and still finds its batch.
                self._tail_offset = int.from_bytes(data[:8], "big")
                self._tail_position = self.size
                self._tail = bytes(data) if len(data) <= TAIL_BYTES else b""
        except OSError as error:
            self.changed = True
            self._truncate_to_size()
            raise storage_error(f"cannot append {len(data)} bytes to {self.path}", error) from error

    def add_batch(self, header: BatchHeader) -> None:
        """Account for the batch with this header at the end of the file."""
        if not self.indexes.is_loaded():
            self.load_indexes()
        self.account(header.last_offset, header.max_timestamp, header.size_bytes)

    def add_found(self, found: VerifiedBatch | Unsound) -> None:
        """Add the next batch or damage that a walk over the file found. `size` is moved to its end."""
        if isinstance(found, VerifiedBatch):
            self.size = found.position
            self.add_batch(found.header)
        else:
            self.ranges.add_damage(found)
            self.size = found.position + found.size_bytes

    def add_run(self, run: BatchRun) -> None:
        """Account for a run of batches that was found at the end; `size` becomes its end. The indexes are loaded."""
        indexes = self.indexes
        for last_offset, position, timestamp, offset in run.entries:
            indexes.offsets.append(last_offset, position)
            indexes.times.maybe_append(timestamp, offset)
        self.size, indexes.bytes_since_entry = run.stop, run.bytes_since_entry
        indexes.max_timestamp, indexes.max_timestamp_offset = run.max_timestamp, run.max_timestamp_offset

    def savepoint(self) -> IndexSavepoint:
        """Return the current state for `roll_back`."""
        return self.load_indexes().savepoint(self.size)

    def roll_back(self, savepoint: IndexSavepoint) -> None:
        """Restore the state at the savepoint."""
        self._forget_tail()
        self.size = savepoint.log_bytes
        self.indexes.roll_back(savepoint)
        self.changed = True
        self._truncate_to_size()

    def truncate(self, position: int, end_offset: int) -> None:
        """Truncate the file at a position, where a batch starts, so that the log ends at `end_offset`, and force it to the disk.

        OSError is raised, with the state as before, if the disk rejects it.
        """
        indexes = self.load_indexes()
        file = self.writable_file()  # held
        os.ftruncate(file.fileno(), position)
        self._is_torn, self.changed, self.next_base = False, True, INT64_MAX
        self._forget_tail()
        self.ranges.truncate(position, end_offset)
        if position <= self._own_position:  # offsets may be missing between the two kinds of batches
            self._own_position, self._own_offset = position, end_offset
        if not position:
            self.first_time = UNREAD
        indexes.truncate(end_offset)
        self.size = indexes.offsets.last()[1]
        expected = self.offsets_at(self.size)[0] if self.size else self.base_offset
        for found in walk_by_headers(file, self.size, position, expected, Bounds(epochs=self.epochs())):
            self.add_found(found)
        self.size = position
        os.fsync(file.fileno())

    def cut_damaged_end(self, found: Unsound) -> None:
        """Truncate the file at the start of a batch that a crash left incomplete."""
        file = self.writable_file()
        os.ftruncate(file.fileno(), found.position)
        self.size = found.position
        self.ranges.truncate(found.position, found.first_offset)  # an earlier walk may have added it as damage

    def _truncate_to_size(self) -> None:
        """Remove what a failed write left. If that fails too, the next write covers it, or the close or recovery removes it."""
        try:
            file = self.file
            os.ftruncate(file.fileno(), self.size)
            self._is_torn = False
        except OSError:
            self._is_torn = True

    def _forget_tail(self) -> None:
        self._tail_offset, self._tail_position, self._tail = INT64_MAX, 0, b""

    # --- Indexes -------------------------------------------------------------------------------------------------

    @property
    def transactions(self) -> TransactionIndex:
        """The index of aborted transactions."""
        return self.indexes.transactions

    def load_indexes(self) -> IndexSet:
        """Return the indexes, read from their files, or rebuilt from the batches if a file is missing or damaged."""
        indexes = self.indexes
        if indexes.is_loaded():
            return indexes
        if self._index_rebuild_failed or not indexes.load(self.size):
            self.rebuild_indexes()
        return indexes

    def rebuild_indexes(self) -> None:
        """Index all batches that can be verified. If the disk fails there are no indexes until they are needed again."""
        file, size = self.file, self.size
        bounds = Bounds(min(self.next_base, self._own_offset), self.epochs())
        self._clear_indexes()
        self._index_rebuild_failed = True
        try:
            for found in walk_by_headers(file, 0, min(size, self._own_position), self.base_offset, bounds):
                self.add_found(found)
            self.size = min(size, self._own_position)
            for position, header in scan(file, self.size, size):
                self.add_found(VerifiedBatch(position, header))
        except BaseException:
            self.indexes.unload()
            raise
        finally:
            self.size = size
        self._index_rebuild_failed = False
        try:
            self.seal()
        except OSError:
            pass  # a flush writes the files when the disk has space again

    def rewind(self, trusted_below: int | None) -> None:
        """Set `size` back to the last index entry that can be trusted; the caller adds the batches from there on again.

        That is the last entry before the offset `trusted_below`, or the last of all if that is None.
        """
        indexes = self.indexes
        if indexes.load(self.size, trusted_below=trusted_below):
            last_offset, position = indexes.offsets.last()
            if not len(indexes.offsets) or self.offsets_at(position)[1] == last_offset:
                self.size = position
                indexes.bytes_since_entry = 0
                return
        self._clear_indexes()

    def _clear_indexes(self) -> None:
        """Start empty indexes at the start of the file."""
        self.indexes.transactions.record_missing()
        self.indexes.clear()
        self.size = 0
        self.rebuilt = self.changed = True

    def entry_before(self, offset: int) -> tuple[int, int]:
        """Return the base offset and position of a batch at or before the one with `offset`, by the index; the segment's start if there is no entry."""
        entry = self._verified_entry(OffsetIndex.before, offset)
        return (self.base_offset, 0) if entry is None else entry

    def offset_above(self, position: int) -> int | None:
        """Return an offset above all batches before a position; None if the index has none."""
        entry = self._verified_entry(OffsetIndex.at_or_behind, position)
        return None if entry is None else entry[0]

    def _verified_entry(
        self, find: Callable[[OffsetIndex, int], tuple[int, int] | None], value: int
    ) -> tuple[int, int] | None:
        """Return the base offset and position of the batch of the index entry that a search for `value` finds.

        If the batch at that position has another offset, the index is rebuilt and searched again.
        """
        for _ in range(2):
            entry = find(self.load_indexes().offsets, value)
            if entry is None:
                return None
            base_offset, last_offset = self.offsets_at(entry[1])
            if last_offset == entry[0]:
                return base_offset, entry[1]
            if self.rebuilt:
                break
            LOG.warning("%s does not match the batches of its log; rebuilding it", self.file_path(OFFSET_SUFFIX))
            self.rebuild_indexes()
        return None

    # --- Walking over batches ------------------------------------------------------------------------------------

    def walk(self, position: int, expected: int, below: int | None = None) -> Iterator[VerifiedBatch | Unsound]:
        """Yield the batches and damages from a position on. The first offset is `expected` or later, all are lower than `below`."""
        bounds = Bounds(below or self.next_base, self.epochs())
        return walk_by_headers(self.file, position, self.size, expected, bounds)

    def batches(self, position: int = 0, expected: int | None = None) -> Iterator[VerifiedBatch]:
        """Yield the verified batches from a position on."""
        first = self.base_offset if expected is None else expected
        return (found for found in self.walk(position, first) if isinstance(found, VerifiedBatch))

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """Read a whole batch into memory."""
        file = self.file
        return os.pread(file.fileno(), header.size_bytes, position)

    def offsets_at(self, position: int) -> tuple[int, int]:
        """Return the first and last offset of the batch at a position; (-1, -1) if there is none."""
        file = self.file
        head = os.pread(file.fileno(), HEAD.size, position)
        if len(head) < HEAD.size:
            return -1, -1
        base_offset, _, magic, last_delta = HEAD.unpack(head)
        return (base_offset, base_offset + last_delta) if magic == MAGIC else (-1, -1)

    def truncation_point(self, offset: int) -> tuple[int, int]:
        """Return the position of the batch with `offset`, or of the first one after it, and the offset after the batch before it."""
        end, position = self.entry_before(offset)
        if position and self.offsets_at(position)[1] >= offset:
            end, position = self.entry_before(end - 1)
        for found in self.walk(position, end):
            next_offset = found.header.next_offset if isinstance(found, VerifiedBatch) else found.next_offset
            if next_offset > offset:
                return found.position, end
            end = next_offset
        return self.size, end

    # --- Reading by offset ---------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, min_one: bool, end: int | None) -> FileSlice | None:
        """Return whole batches from the one with `offset` on, up to the offset `end`.

        The slice is empty if `max_bytes` is too small; None means that no batch reaches the offset. DamagedLogError is raised if
        the offset is in a damaged range.
        """
        offset = max(offset, self.base_offset)
        if offset >= self._own_offset:
            position, stop = self.position_of(offset), self.size
            near = position
        else:
            found = self._find_intact(offset, max_bytes)
            if found is None:
                return None
            intact, position = found
            near, stop = position, intact.stop
            if stop >= self._own_position:
                stop = self.size
        if end is not None and position < stop:
            stop = find_offset(self.file, near if end < self._own_offset else self._own_position, stop, end)
        if position >= stop:
            return None
        return self._slice(position, stop, max_bytes, min_one)

    def read_last_append(self, offset: int, max_bytes: int) -> FileSlice | None:
        """Return the batches from `offset` to the end from memory, if they are the last append and none is of an aborted transaction.

        None means that `read` must be used.
        """
        tail = self._tail
        size = len(tail)
        if offset != self._tail_offset or not size or size > max_bytes or self._tail_position + size != self.size:
            return None
        if offset < self._own_offset or not self.indexes.has_no_aborted_transactions:
            return None
        try:
            return FileSlice(self.file, self._tail_position, size, tail)
        except OSError:
            return None

    def position_of(self, offset: int) -> int:
        """Return the position of the batch with `offset`, or of the next batch; `size` if there is none.

        The batches must be trusted or verified. CorruptRecordError is raised if they are damaged.
        """
        if offset == self._tail_offset and self._tail:
            return self._tail_position
        near = self._tail_position if offset >= self._tail_offset else self.entry_before(offset)[1]
        return find_offset(self.file, near, self.size, offset)

    def _slice(self, position: int, stop: int, max_bytes: int, min_one: bool) -> FileSlice:
        """Return whole batches between two batch boundaries; empty if `max_bytes` is too small for the first, unless `min_one`."""
        limit = position + max_bytes
        if limit < stop:
            entry = self._verified_entry(OffsetIndex.up_to, limit)
            stop = entry[1] if entry is not None else 0
            if stop <= position:
                stop = find_end(self.file, position, limit, min_one=min_one)
        size = max(stop - position, 0)
        is_tail = size > 0 and position == self._tail_position and size == len(self._tail)
        return FileSlice(self.file, position, size, self._tail if is_tail else b"")

    def _find_intact(self, offset: int, max_bytes: int) -> tuple[IntactRange, int] | None:
        """Return the intact range with an offset and the position in it; None if no batch reaches the offset.

        What is not verified yet is verified, up to `max_bytes` after the offset. DamagedLogError is raised for a damaged range.
        """
        ranges = self.ranges
        extent = min(self.size, self._own_position)
        last = None
        while True:
            damage = ranges.damage_at(offset)
            if damage is not None:
                raise DamagedLogError(damage)
            intact = ranges.intact_at(offset)
            if intact is None:
                start = self._nearest_known(offset)
                if start[0] >= extent:
                    return None
                for each in ranges.damages:  # after offsets that compaction removed, or that seem to be removed by it
                    if each.position == start[0] and each.size_bytes:
                        raise DamagedLogError(each)
            else:
                entry = self.entry_before(offset)[1]
                near = entry if intact.start <= entry < intact.stop else intact.start
                position = find_offset(self.file, near, intact.stop, offset)
                ended = intact.stop >= extent or any(each.position == intact.stop for each in ranges.damages)
                if ended or intact.stop - position >= max_bytes:
                    return intact, position
                start = intact.stop, intact.next_offset
            assert start != last, f"{self.path}: no progress from {start} to offset {offset}"
            last = start
            self._verify(*start, offset, max_bytes)

    def _nearest_known(self, offset: int) -> tuple[int, int]:
        """Return a position at or before the batch with an offset, from which to verify, and the offset expected there."""
        base_offset, position = self.entry_before(offset)
        before = self.ranges.intact_before(offset)
        if before is not None and before.stop >= position:
            position, base_offset = before.stop, before.next_offset
        for damage in self.ranges.damages:
            if damage.next_offset <= offset and damage.position + damage.size_bytes > position:
                position, base_offset = damage.position + damage.size_bytes, damage.next_offset
        return position, base_offset

    def _verify(self, position: int, expected: int, offset: int, max_bytes: int) -> None:
        """Verify headers from a position on, until `max_bytes` after an offset, and keep what is intact and what is damaged."""
        extent, bounds = self._unverified_extent(position, expected)
        intact = IntactRange(position, position, expected, expected)
        goal = extent
        for found in walk_by_headers(self.file, position, extent, expected, bounds):
            if isinstance(found, Unsound):
                self.ranges.add_intact(intact)
                self.ranges.add_damage(found)
                start = found.position + found.size_bytes
                intact = IntactRange(start, start, found.next_offset, found.next_offset)
                if found.next_offset > offset:
                    break
                continue
            header = found.header
            stop = found.position + header.size_bytes
            intact = intact._replace(stop=stop, next_offset=header.next_offset)
            if goal == extent and header.next_offset > offset:
                goal = min(found.position + max_bytes, extent)
            if goal < extent and stop >= goal:
                break
        self.ranges.add_intact(intact)

    def _unverified_extent(self, position: int, expected: int) -> tuple[int, Bounds]:
        """Return the position up to which to verify, and the bounds: headers do not show damage that a start found by its CRC."""
        extent = min(self.size, self._own_position)
        bounds = Bounds(min(self.next_base, self._own_offset), self.epochs())
        for damage in self.ranges.damages:
            if damage.size_bytes and position <= damage.position < extent:
                below = min(bounds.below, damage.offset) if expected <= damage.offset else bounds.below
                return damage.position, replace(bounds, below=below)
        return extent, bounds

    # --- Searching by timestamp ----------------------------------------------------------------------------------

    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, from which `segment.ms` counts; -1 if there is no batch."""
        if self.first_time == UNREAD and self.size:
            self.first_time = next((header.max_timestamp for _, header in self.batches()), NO_TIMESTAMP)
        return NO_TIMESTAMP if self.first_time == UNREAD else self.first_time

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of all records; -1 if there is none."""
        indexes = self.load_indexes()
        entries = indexes.unverified_times
        if entries is not None:
            indexes.unverified_times = None
            if not self._has_complete_times(indexes.times, entries):
                self.rebuild_indexes()
        return indexes.max_timestamp

    def age_timestamp(self) -> int:
        """Return the timestamp from which retention counts: the largest of the records, else the time of the last write (ms)."""
        largest = self.largest_timestamp()
        return largest if largest >= 0 else self.path.stat().st_mtime_ns // 1_000_000

    def find_timestamp(self, timestamp: int, from_offset: int) -> OffsetAndTimestamp | None:
        """Return the first record at or after both `timestamp` (ms) and `from_offset`."""
        times = self.load_indexes().times
        number = times.before(timestamp)
        if number >= 0 and not self._is_verified_time(times, number):
            self.rebuild_indexes()
            times = self.load_indexes().times
            number = times.before(timestamp)
        first = from_offset if number < 0 else max(times.entry(number)[1], from_offset)
        expected, start = self.entry_before(first)
        search = partial(find_record, timestamp=timestamp, from_offset=from_offset)
        for batch in self.batches(start, expected):
            if batch.header.max_timestamp >= timestamp and batch.header.last_offset >= from_offset:
                found = self._search_batch(batch, search)
                if found is not None:
                    return found
        return None

    def find_largest_timestamp(self) -> OffsetAndTimestamp | None:
        """Return the first record with the largest timestamp. If no record has the timestamp of its batch header, the records count."""
        largest = self.largest_timestamp()
        found = self.find_timestamp(largest, self.base_offset)
        if found is not None:
            return found
        for batch in self.batches():
            if batch.header.max_timestamp == largest:
                return self._search_batch(batch, find_latest_record)
        return None

    def _search_batch(
        self, batch: VerifiedBatch, search: Callable[[bytes, BatchHeader], OffsetAndTimestamp | None]
    ) -> OffsetAndTimestamp | None:
        """Search the records of a batch; DamagedLogError if they are damaged."""
        position, header = batch
        try:
            return search(self.read_batch(position, header), header)
        except CorruptRecordError as error:
            found = Unsound(position, header.size_bytes, header.base_offset, header.next_offset, str(error))
            raise DamagedLogError(make_damage(self.path, found)) from error

    def _has_complete_times(self, times: TimeIndex, count: int) -> bool:
        """Return True if the first `count` entries of a time index lead to the largest timestamp.

        If the index lost its end, a batch shortly after its last entry has a later timestamp. A complete index has its last
        entry at the end of a log whose timestamps increase.
        """
        if self.rebuilt:
            return True
        if count and not self._is_verified_time(times, count - 1):
            return False
        window = ScanWindow(self.file, self.size, 0)
        expected, start = self.entry_before(times.entry(count - 1)[1] if count else self.base_offset)
        for batch in self.batches(start, expected):
            if batch.position >= min(start + TIME_CHECK_BYTES, self._own_position):
                break
            if batch.header.max_timestamp > self.indexes.max_timestamp and is_whole(window, batch):
                self._warn_about_times()
                return False
        return True

    def _is_verified_time(self, times: TimeIndex, number: int) -> bool:
        """Return True if an entry of a time index names the first batch that reaches its timestamp, as far as the batches after the previous entry show."""
        if self.rebuilt:
            return True
        timestamp, offset = times.entry(number)
        before = times.entry(number - 1)[1] if number else self.base_offset
        expected, start = self.entry_before(before)
        for _, header in self.batches(start, expected):
            if header.last_offset >= offset:
                if header.base_offset <= offset and header.max_timestamp == timestamp:
                    return True
                break
            if header.max_timestamp >= timestamp:
                break
        self._warn_about_times()
        return False

    def _warn_about_times(self) -> None:
        LOG.warning("%s does not match the timestamps of its log; rebuilding it", self.file_path(TIME_SUFFIX))

    # --- Flushing ------------------------------------------------------------------------------------------------

    def seal(self) -> None:
        """Write the indexes of a full segment."""
        self.complete_time_index()
        if self.changed:
            self.indexes.save(sync=False)

    def complete_time_index(self) -> None:
        """Add the largest timestamp to the time index of a segment that is full or is being closed; a flush writes it.

        Raise OSError if the file still has bytes of a failed write behind its end, and they cannot be removed.
        """
        if self.load_indexes().add_largest_timestamp():
            self.changed = True
        if self._is_torn:  # nothing may follow: a clean shutdown promises that the file ends with the last batch
            os.ftruncate(self.writable_file().fileno(), self.size)
            self._is_torn = False

    def flush(self, *, sync: bool = True) -> None:
        """Force the log, then the indexes, to the disk; without `sync` only write them."""
        if self.changed:
            self.changed = False
            try:
                if sync:
                    self._force_to_disk()
                self.load_indexes().save(sync=sync)
            except BaseException:
                self.changed = True
                raise

    def mark_unforced(self) -> None:
        """Forget what is known to be on the disk, before a truncation."""
        self._forced = 0

    def unforced_batches(self) -> Iterator[tuple[int, bytes]]:
        """Yield the positions and bytes of the batches that were never forced; OSError if the system has dropped one."""
        file, position, end = self.file, self._forced, self.size
        if position == end:
            return
        try:
            first = read_header(ScanWindow(file, end, SCAN_BLOCK), position, end)
            for found in walk_by_checksums(file, position, end, first.base_offset, Bounds(self.next_base)):
                if isinstance(found, Unsound):
                    raise CorruptRecordError(f"the batch at position {found.position} is damaged")
                assert isinstance(found, VerifiedBatch)  # runs were not requested
                yield found.position, os.pread(file.fileno(), found.header.size_bytes, found.position)
        except CorruptRecordError as error:
            raise OSError(errno.EIO, f"what could not be written is lost: {error}") from None

    def _force_to_disk(self) -> None:
        file, size, self.doubted = self.file, self.size, True  # held, so that no release closes it
        os.fsync(file.fileno())
        self._forced, self.doubted = size, False

    # --- Compaction and deletion ---------------------------------------------------------------------------------

    def rename(self, suffix: str) -> None:
        """Rename all files to end with `suffix`. Readers keep the file open that they have."""
        self.file  # noqa: B018 - opened while the name still exists
        for kind in FILES:
            before = self.file_path(kind)
            if before.exists():
                before.rename(self.directory / f"{self.base_offset:020d}{kind}{suffix}")
        self.suffix = suffix
        self.indexes.set_suffix(suffix)

    def retire(self) -> None:
        """Write nothing from now on: the names of the files belong to a compacted segment."""
        self.changed = False
        self.indexes.retire()

    def delete(self) -> None:
        """Delete the files; slices that are being sent keep theirs open."""
        self.changed = False
        for kind in FILES:
            self.file_path(kind).unlink(missing_ok=True)


# The only functions of storage that read the records of a batch.


def find_record(data: Buffer, header: BatchHeader, timestamp: int, from_offset: int) -> OffsetAndTimestamp | None:
    """Return the first record of a batch at or after both `timestamp` and `from_offset`."""
    if header.is_control or header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        # All records have the timestamp of the batch.
        if header.max_timestamp < timestamp or header.last_offset < from_offset:
            return None
        return OffsetAndTimestamp(max(header.base_offset, from_offset), header.max_timestamp, header.leader_epoch)
    from ottla.records.columns import decode  # a broker needs it for nothing else

    columns = decode(data, from_offset=from_offset, with_headers=False)
    for offset, found in zip(columns.offsets, columns.timestamps, strict=True):
        if found >= timestamp:
            return OffsetAndTimestamp(offset, found, header.leader_epoch)
    return None


def find_latest_record(data: Buffer, header: BatchHeader) -> OffsetAndTimestamp | None:
    """Return the first record of a batch with its largest timestamp; None if the batch has no records."""
    from ottla.records.columns import decode

    columns = decode(data, with_headers=False)
    times = list(columns.timestamps)
    if not times:
        return None
    row = times.index(max(times))
    return OffsetAndTimestamp(columns.offsets[row], times[row], header.leader_epoch)
