"""One segment of a log: a file of record batches and the indexes beside it.

Files are opened when they are first used, indexes read when they are first asked. Calls block on the disk.
The one rule: `size` bytes of the file are whole batches, whatever a failed write left behind them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ottla.model import INT64_MAX, FileSlice
from ottla.records.batch import MAGIC, BatchHeader
from ottla.storage.batches.scan import HEAD, find_end, find_offset, scan
from ottla.storage.batches.sound_walk import Bounds, Found, Unsound, sound_walk
from ottla.storage.files.open_file import OpenFile, write_all
from ottla.storage.files.open_files import OPEN_FILES
from ottla.storage.files.storage_error import storage_error
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.segments.ground import Ground
from ottla.storage.segments.segment_end import UNREAD, Savepoint, SegmentEnd
from ottla.storage.segments.time_search import tells_latest
from ottla.storage.segments.unforced import force

LOG = logging.getLogger(__name__)
FILES = (".log", ".index", ".timeindex", ".txnindex")
TAIL_BYTES = 2048
"""Of an append that is kept in memory for who waits for it; each log that is written keeps one."""


class Segment(SegmentEnd):
    """The batches from `base_offset` on, up to the next segment."""

    __slots__ = (
        "__weakref__",
        "_times_found",
        "_torn",
        "_unindexed",
        "below",
        "directory",
        "doubted",
        "epochs",
        "forced",
        "ground",
        "own_offset",
        "own_position",
        "rebuilt",
        "suffix",
        "tail",
        "tail_offset",
        "tail_position",
    )

    def __init__(self, directory: Path, base_offset: int, size: int, index_interval: int, suffix: str = "") -> None:
        super().__init__(base_offset, size, index_interval)
        self.suffix = suffix
        """What follows the names of its files while compaction has not put it in its place."""
        self.directory = directory
        self.rebuilt = False
        """Whether the indexes come from the batches themselves rather than from their files."""
        self.below = INT64_MAX
        """The offset at which the next segment begins."""
        self.epochs: Callable[[], Sequence[tuple[int, int]]] = tuple
        """Tells the leader epochs of the log, and where they began."""
        self.own_position = self.own_offset = INT64_MAX
        """Where that begins which was appended in this run, and is believed."""
        self.tail_offset, self.tail_position, self.tail = INT64_MAX, 0, b""
        """The first batch of the last append, where it lies, and its bytes if they are few: who waits for records reads there, without a search."""
        self.ground = Ground(self.path)
        """What was looked at of the rest."""
        self.forced, self.doubted = 0, False  # what `unforced` knows of the file
        self._torn = False
        """Whether the file has more than `size` bytes, as a failed write may leave it."""
        self._unindexed = False
        """Whether its indexes were to be made anew, and could not be."""
        self._times_found: int | None = None
        """Entries of a time index that nobody held against the batches yet: the last tells how late its records are."""

    @classmethod
    def create(cls, directory: Path, base_offset: int, index_interval: int, suffix: str = "") -> Segment:
        """A new, empty segment, its files there."""
        segment = cls(directory, base_offset, 0, index_interval, suffix)
        segment.clear_indexes()
        for index in (segment.offsets, segment.times):
            index.file.create()
        # The last of them: without it the others are none of a segment, and a start removes them.
        segment._file = OPEN_FILES.open(segment, segment.path, create=True)
        segment.transactions.clear()
        segment.own_position, segment.own_offset = 0, base_offset
        segment.changed = True
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    @property
    def path(self) -> Path:
        return self.beside(".log")

    def beside(self, suffix: str) -> Path:
        """The segment's file with that suffix."""
        return self.directory / f"{self.base_offset:020d}{suffix}{self.suffix}"

    @property
    def file(self) -> OpenFile:
        """The open file; holding it keeps its bytes readable, even after `delete` or `release`."""
        file = self._file
        if file is None:
            file = self._file = OPEN_FILES.open(self, self.path)
        self.used = OPEN_FILES.opened
        return file

    def writable_file(self) -> OpenFile:
        """The same, opened anew if the system did not let us write before; OSError where it still does not."""
        file = self.file
        if not file.writable:
            file = self._file = OPEN_FILES.open(self, self.path, write=True)
        return file

    @property
    def offsets(self) -> OffsetIndex:
        if self._offsets is None:
            self.load()
        assert self._offsets is not None
        return self._offsets

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            self.load()
        assert self._times is not None
        return self._times

    @property
    def transactions(self) -> TransactionIndex:
        if self._transactions is None:
            self._transactions = TransactionIndex(self.beside(".txnindex"), self.base_offset)
        return self._transactions

    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch, which `segment.ms` counts from; -1 where there is none."""
        if self.first_time == UNREAD and self.size:
            self.first_time = next((header.max_timestamp for _, header in self.batches()), NO_TIMESTAMP)
        return NO_TIMESTAMP if self.first_time == UNREAD else self.first_time

    def append(self, data: memoryview, headers: Iterable[BatchHeader]) -> None:
        """Write batches that have their place already."""
        self.write(data)
        for header in headers:
            self.note(header)
        self.changed = True

    def write(self, data: memoryview) -> None:
        """Write bytes behind the last batch, which are none of the segment's until they are accounted for.

        On a failed write the file and the state are as before, and KafkaError(KAFKA_STORAGE_ERROR) says why.
        """
        try:
            file = self._file  # held, so that no other thread's need of descriptors closes it
            if file is None or not file.writable:
                file = self.writable_file()
            self.used = OPEN_FILES.opened
            write_all(file.fileno(), data, self.size)
            if data:
                # The offset first: who looks between the two starts too early, and finds it all the same.
                self.tail_offset = int.from_bytes(data[:8], "big")
                self.tail_position = self.size
                self.tail = bytes(data) if len(data) <= TAIL_BYTES else b""
        except OSError as error:
            self.changed = True
            self.cut_to_size()
            raise storage_error(f"cannot append {len(data)} bytes to {self.path}", error) from error

    def note(self, header: BatchHeader) -> None:
        """Account for the batch with this header."""
        if not self.indexed():
            self.load()
        self.account(header.last_offset, header.max_timestamp, header.size_bytes)

    def savepoint(self) -> Savepoint:
        """Where it stands now, to `roll_back` to."""
        if not self.indexed():
            self.load()
        return Savepoint(self)

    def forget_tail(self) -> None:
        """The last append may be gone."""
        self.tail_offset, self.tail_position, self.tail = INT64_MAX, 0, b""

    def roll_back(self, savepoint: Savepoint) -> None:
        """Be as at the savepoint, whatever was appended since."""
        self.forget_tail()
        self.size, self.bytes_since_entry = savepoint.size, savepoint.bytes_since_entry
        self.max_timestamp, self.max_timestamp_offset = savepoint.max_timestamp, savepoint.max_timestamp_offset
        self.offsets.drop_from(savepoint.offsets)
        self.times.drop_from(savepoint.times)
        if savepoint.transactions is not None:
            self.transactions.drop_from(savepoint.transactions)
        self.changed = True
        self.cut_to_size()

    def cut_to_size(self) -> None:
        """Drop what a failed write left; where even that fails, the next write covers it or recovery cuts it."""
        try:
            file = self.file
            os.ftruncate(file.fileno(), self.size)
            self._torn = False
        except OSError:
            self._torn = True

    def truncate(self, position: int, end_offset: int) -> None:
        """Cut the file at a position, where a batch begins, so that the log ends with the one before, at that offset.

        It is forced to the disk. OSError, with all as before, where the disk does not let us.
        """
        offsets, times = self.offsets, self.times
        file = self.writable_file()  # held
        os.ftruncate(file.fileno(), position)
        self._torn, self.changed, self.below = False, True, INT64_MAX
        self.forget_tail()
        self.ground.cut(position, end_offset)
        if position <= self.own_position:  # Offsets may be missing between what is found there and what was appended.
            self.own_position, self.own_offset = position, end_offset
        if not position:
            self.first_time = UNREAD
        offsets.truncate(end_offset)
        times.truncate(offsets.last()[0] + 1 if len(offsets) else self.base_offset)
        self._times_found = self._times_found and min(self._times_found, len(times))
        self.max_timestamp, self.max_timestamp_offset = times.last()
        self.size, self.bytes_since_entry = offsets.last()[1], 0
        expected = self.ends_at(self.size)[0] if self.size else self.base_offset
        for found in sound_walk(file, self.size, position, expected, Bounds(epochs=self.epochs())):
            self.note_found(found)
        self.size = position
        os.fsync(file.fileno())

    @property
    def damaged(self) -> bool:
        """Whether some of it is known to be damaged: then nothing is appended to it any more."""
        return bool(self.ground.damages)

    @property
    def bounds(self) -> Bounds:
        """What its batches are held against, as far as they were not appended in this run."""
        return Bounds(min(self.below, self.own_offset), self.epochs())

    def stretches(self, position: int, expected: int, below: int | None = None) -> Iterator[Found | Unsound]:
        """What there is from a position on, where an offset is expected or a later one; all of it is `below` an offset."""
        return sound_walk(self.file, position, self.size, expected, Bounds(below or self.below, self.epochs()))

    def batches(self, position: int = 0, expected: int | None = None) -> Iterator[Found]:
        """The batches from a position on that can be believed."""
        begin = self.base_offset if expected is None else expected
        return (found for found in self.stretches(position, begin) if isinstance(found, Found))

    def entry_before(self, offset: int) -> tuple[int, int]:
        """Base offset and position of a batch at or before the one that holds `offset`; the segment's start at worst."""
        entry = self.true_entry(lambda offsets: offsets.before(offset))
        return (self.base_offset, 0) if entry is None else entry

    def true_entry(self, find: Callable[[OffsetIndex], tuple[int, int] | None]) -> tuple[int, int] | None:
        """The base offset and position of the batch that an index entry leads to, which says what the batch does.

        Where it does not, the index is made anew, and what that has is believed.
        """
        for _ in range(2):
            entry = find(self.offsets)
            if entry is None:
                return None
            base_offset, last_offset = self.ends_at(entry[1])
            if last_offset == entry[0]:
                return base_offset, entry[1]
            if self.rebuilt:
                break
            LOG.warning("%s does not lead to the batches of its log: it is made anew", self.beside(".index"))
            self.rebuild()
        return None

    def ends_at(self, position: int) -> tuple[int, int]:
        """First and last offset of the batch at a position, -1 where none is."""
        file = self.file
        head = os.pread(file.fileno(), HEAD.size, position)
        if len(head) < HEAD.size:
            return -1, -1
        base_offset, _, magic, last_delta = HEAD.unpack(head)
        return (base_offset, base_offset + last_delta) if magic == MAGIC else (-1, -1)

    def position_of(self, offset: int) -> int:
        """Position of the batch that holds `offset`, or of the next after it; `size` where there is none.

        For what was appended in this run, or looked at; damage on the way is a CorruptRecordError.
        """
        if offset == self.tail_offset and self.tail:
            return self.tail_position
        near = self.tail_position if offset >= self.tail_offset else self.entry_before(offset)[1]
        return find_offset(self.file, near, self.size, offset)

    def slice(self, position: int, max_bytes: int, *, min_one: bool, end: int | None = None) -> FileSlice | None:
        """Whole batches from `position` on; None where `max_bytes` has no room for the first and it need not come.

        `end` is a position up to which they may come, a boundary between batches.
        """
        end, limit = self.size if end is None else end, position + max_bytes
        if limit < end:
            entry = self.true_entry(lambda offsets: offsets.up_to(limit))
            end = entry[1] if entry is not None else 0
            if end <= position:
                end = find_end(self.file, position, limit, min_one=min_one)
        if end <= position:
            return None
        size = end - position
        is_tail = position == self.tail_position and size == len(self.tail)
        return FileSlice(self.file, position, size, self.tail if is_tail else b"")

    def offset_above(self, position: int) -> int | None:
        """An offset that no batch before a position reaches; None where the index does not tell."""
        entry = self.true_entry(lambda offsets: offsets.at_or_behind(position))
        return None if entry is None else entry[0]

    def batch(self, position: int, header: BatchHeader) -> bytes:
        """A whole batch, read into memory."""
        file = self.file
        return os.pread(file.fileno(), header.size_bytes, position)

    def load(self) -> None:
        """Read the indexes of a segment that is not written any more; rebuild them where they are no good."""
        offsets, times = self.new_indexes()
        if not self._unindexed and offsets.load(self.size) and times.load():
            self._offsets, self._times, self._times_found = offsets, times, len(times)
            self.max_timestamp, self.max_timestamp_offset = times.last()
        else:
            self.rebuild()

    def rebuild(self) -> None:
        """Index the file anew from those of its batches that can be believed.

        Where the disk does not let us there are no indexes, until somebody asks for them again.
        """
        file, size, bounds = self.file, self.size, self.bounds  # for which all that is here may be looked at
        self.transactions.miss()
        self.clear_indexes()
        self.rebuilt = self.changed = self._unindexed = True
        try:
            for found in sound_walk(file, 0, min(size, self.own_position), self.base_offset, bounds):
                self.note_found(found)
            self.size = min(size, self.own_position)
            for position, header in scan(file, self.size, size):
                self.note_found(Found(position, header))
        except BaseException:
            self._offsets = self._times = None
            raise
        finally:
            self.size = size
        self._unindexed = False
        try:
            self.seal()
        except OSError:
            pass  # Reading goes on without the files; a flush writes them when there is room again.

    def note_found(self, found: Found | Unsound) -> None:
        """Note what a walk found; `size` is where it ends."""
        if isinstance(found, Found):
            self.size = found.position
            self.note(found.header)
        else:
            self.ground.add_damage(found)
            self.size = found.position + found.size_bytes

    def rewind(self, trusted_below: int | None) -> None:
        """Go back to the last index entry that can be trusted; the batches from there on are to be noted again.

        That is the last before the offset `trusted_below`, or the very last where that is None.
        """
        offsets, times = self.new_indexes()
        if offsets.load(self.size) and times.load():
            if trusted_below is not None:
                offsets.truncate(trusted_below)
                times.truncate(offsets.last()[0] + 1 if len(offsets) else self.base_offset)
            last, position = offsets.last()
            if not len(offsets) or self.ends_at(position)[1] == last:
                self._offsets, self._times, self._times_found = offsets, times, len(times)
                self.max_timestamp, self.max_timestamp_offset = times.last()
                self.size = position
                self.bytes_since_entry = 0
                return
        self.transactions.miss()
        self.clear_indexes()
        self.rebuilt = self.changed = True

    def new_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        return (
            OffsetIndex(self.beside(".index"), self.base_offset),
            TimeIndex(self.beside(".timeindex"), self.base_offset),
        )

    def clear_indexes(self) -> None:
        """Begin both indexes anew, whatever their files hold; the batches are to be noted from the start."""
        self._offsets, self._times = self.new_indexes()
        self._offsets.clear()
        self._times.clear()
        self._times_found = None
        self.size = self.bytes_since_entry = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset

    def seal(self) -> None:
        """Write the indexes of a segment that is full."""
        self.complete()
        if self.changed:
            self.save_indexes(sync=False)

    def complete(self) -> None:
        """Put the largest timestamp into the time index: the segment is full, or is being closed. A flush writes it."""
        if self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset):
            self.changed = True
        if self.changed and self._torn:
            self.cut_to_size()

    def latest(self) -> int:
        """The largest timestamp; -1 where there is none."""
        times = self.times
        if self._times_found is not None:
            is_true = tells_latest(self, times, self._times_found)
            self._times_found = None
            if not is_true:
                self.rebuild()
        return self.max_timestamp

    def age_timestamp(self) -> int:
        """What retention takes as the segment's age: the largest timestamp, else when the file was written last."""
        latest = self.latest()
        return latest if latest >= 0 else self.path.stat().st_mtime_ns // 1_000_000

    def save_indexes(self, *, sync: bool) -> None:
        self.offsets.save(sync=sync)
        self.times.save(sync=sync)
        if self._transactions is not None:
            self._transactions.save(sync=sync)

    def flush(self, *, sync: bool = True) -> None:
        """Force the log, then its indexes, to the disk; without `sync` only write them. May run beside appends."""
        if self.changed:
            self.changed = False
            try:
                if sync:
                    force(self)
                self.save_indexes(sync=sync)
            except BaseException:
                self.changed = True
                raise

    def rename(self, suffix: str) -> None:
        """Give all files another ending. Who reads meanwhile has the open file, which is kept until that is over."""
        self.file  # noqa: B018 - opened while the name is still true
        for kind in FILES:
            before = self.beside(kind)
            if before.exists():
                before.rename(self.directory / f"{self.base_offset:020d}{kind}{suffix}")
        self.suffix = suffix
        self.offsets.file.path, self.times.file.path = self.beside(".index"), self.beside(".timeindex")
        self.transactions.path = self.beside(".txnindex")

    def retire(self) -> None:
        """Write nothing any more: the files' names are those of a compacted segment from here on."""
        self.changed = False
        if self._offsets is not None and self._times is not None:
            self._offsets.file.retire()
            self._times.file.retire()
        if self._transactions is not None:
            self._transactions.retire()

    def index_bytes(self) -> int:
        """Size of the larger index on the disk, 0 where there is none."""
        paths = (self.beside(".index"), self.beside(".timeindex"))
        return max(path.stat().st_size if path.exists() else 0 for path in paths)

    def release(self) -> None:
        """Close the file until it is used again."""
        if self._file is not None:
            OPEN_FILES.remove(self)
            self._file = None

    def drop_file(self) -> None:
        """The same, on behalf of those who keep count; not while the file is about to change its name."""
        if not self.suffix:
            self._file = None

    def delete(self) -> None:
        """Remove the files; slices that are under way still hold theirs."""
        self.changed = False
        for suffix in FILES:
            self.beside(suffix).unlink(missing_ok=True)
