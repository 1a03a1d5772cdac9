"""Transaction index of a segment: the aborted transactions with markers in it. Kafka's `.txnindex`.

The file has rows of 34 bytes, ordered by the offset of the marker. Most segments have no rows and no file. As with the other indexes, the
file is written at a flush, a roll or a close; what a crash takes is found in the log again. A file that cannot be trusted stays until
another one replaces it atomically, so that a crash in between finds it again.

`aborting-segments` next to the log lists the segments with rows, so that a missing file is noticed. A file also counts as missing
if the segment's `.index`, which each segment has, is missing: both were probably deleted. Then the batches are read instead.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct

from ottla.errors import CorruptRecordError
from ottla.storage.files.checkpoint import read_numbers, write_rows
from ottla.storage.files.durable import sync_path
from ottla.storage.files.open_file import write_all
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.indexes.index_file import SAVING
from ottla.storage.producers.producer_state import AbortedTxn

LOG = logging.getLogger(__name__)
FILE_NAME = "aborting-segments"
"""Lists the segments with aborted transactions, next to the log."""
ROW = Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""
LAST = Struct(">18xq")
VERSION = 0
DRAFT = ".tmp"


class TransactionIndex:
    """The rows in memory, read when they are first asked for, and the file behind them."""

    __slots__ = (
        "_base",
        "_entry_new",
        "_must_rewrite",
        "_noted",
        "_rows",
        "_saved",
        "_unsynced",
        "believed",
        "path",
        "retired",
    )

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self._base = base_offset
        self._rows: bytearray | None = None
        self._saved = 0
        """Bytes of the rows that are in the file."""
        self._must_rewrite = False
        """True if the next save replaces the file."""
        self._unsynced = False
        self._entry_new = False
        """True if the file may have no directory entry on the disk."""
        self._noted: bool | None = None
        """True if the segment is listed in `aborting-segments`; None if that was not read."""
        self.believed = False
        """True if the rows are those of the log, and not only those of the file."""
        self.retired = False
        """True if the name belongs to another file, as in `IndexFile`."""

    def __iter__(self) -> Iterator[AbortedTxn]:
        """Iterate over all transactions; CorruptRecordError if the file is damaged."""
        return (AbortedTxn(*row[1:]) for row in ROW.iter_unpack(bytes(self.rows)))

    def __len__(self) -> int:
        return len(self.rows) // ROW.size

    @property
    def rows(self) -> bytearray:
        """The bytes of the file and those that are not written yet."""
        if self._rows is None:
            self._rows = self._load()
            self._saved = len(self._rows)
        return self._rows

    @property
    def is_loaded(self) -> bool:
        """True if the rows are in memory."""
        return self._rows is not None

    def append(self, transaction: AbortedTxn) -> None:
        """Add a transaction with a marker after those of all others here."""
        self.rows.extend(ROW.pack(VERSION, *transaction))

    def insert(self, transaction: AbortedTxn) -> None:
        """Note a transaction in its place among the others, once."""
        known = list(self)
        if transaction not in known:
            number = bisect_right(known, transaction.last_offset, key=lambda each: each.last_offset)
            with SAVING:
                self.rows[number * ROW.size : number * ROW.size] = ROW.pack(VERSION, *transaction)
                self._saved, self._must_rewrite = 0, True

    def find_overlapping(self, offset: int, upper: int) -> tuple[list[AbortedTxn], bool]:
        """Return those with records from `offset` on and below `upper`, and True if later segments need not be searched."""
        rows = self.rows
        found: list[AbortedTxn] = []
        if not rows:
            return found, False
        for number in range(bisect_left(range(len(self)), offset, key=self._last), len(self)):
            transaction = AbortedTxn(*ROW.unpack_from(rows, number * ROW.size)[1:])
            if transaction.first_offset < upper:
                found.append(transaction)
            if transaction.last_stable_offset >= upper:
                return found, True
        return found, False

    def clear(self) -> None:
        """Remove all rows, whatever the file contains."""
        self.replace(())

    def replace(self, transactions: Iterable[AbortedTxn]) -> None:
        """Take these, which the log says, for all that there are; the file has them with the next save."""
        rows = bytearray().join(ROW.pack(VERSION, *transaction) for transaction in transactions)
        with SAVING:
            self._rows, self._saved, self._must_rewrite, self.believed = rows, 0, True, True

    def set_rows(self, transactions: list[AbortedTxn]) -> None:
        """Take these transactions, read from the log, as the rows. An equal file is left unchanged; a wrong entry in `aborting-segments` is removed."""
        rows = bytearray().join(ROW.pack(VERSION, *transaction) for transaction in transactions)
        if rows != self._rows or (self._noted and not rows):
            self.replace(transactions)
        self.believed = True

    def distrust(self) -> None:
        """Believe neither the file nor that it is not there, before the log was asked."""
        try:
            self.rows  # noqa: B018 - read now, as that says whether it is believed
        except CorruptRecordError:
            pass  # the next reader rebuilds it
        self.believed = False

    def record_missing(self) -> None:
        """Before the offset index is rebuilt: if its file is missing, list the segment as one with aborted transactions.

        This file may be missing as well, so the batches are read, in a later run too.
        """
        if self._has_offset_index or self.path.exists():
            return
        self.distrust()
        try:
            record_aborting(self.path.parent, self._base, aborts=True, sync=False)
        except OSError:
            return  # The disk does not let us: in this run it is known all the same.
        self._noted = True

    def drop_from(self, count: int) -> None:
        """Forget the rows from that number on."""
        with SAVING:
            if count < len(self):
                del self.rows[count * ROW.size :]
                self._saved, self._must_rewrite = 0, True

    @property
    def end(self) -> int:
        """The offset of the last marker; -1 if there is none."""
        return self._last(len(self) - 1) if self.rows else -1

    def truncate(self, offset: int) -> None:
        """Drop the transactions with markers at `offset` or later; CorruptRecordError if the file is damaged."""
        self.drop_from(bisect_left(range(len(self)), offset, key=self._last))

    def retire(self) -> None:
        """Never write again, as `IndexFile.retire`."""
        with SAVING:
            self.retired = True

    def save(self, *, sync: bool = False) -> None:
        """Bring the file up to date. Another thread may call `append` at the same time."""
        if self._rows is None:
            return
        with SAVING:
            if self.retired:
                return
            end = len(self._rows)
            # Before the file is there: after a crash in between the batches are asked once more.
            if self._noted is not bool(end) and (end or (self._must_rewrite and self.believed)):
                record_aborting(self.path.parent, self._base, aborts=bool(end), sync=sync)
                self._noted = bool(end)
            if self._must_rewrite:
                self._rewrite_file(end)
            elif end > self._saved:
                self._write(end)
            if sync and self._unsynced:
                self._sync()

    def _write(self, end: int) -> None:
        assert self._rows is not None
        self._entry_new = self._entry_new or not self.path.exists()
        fd = open_regular(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            write_all(fd, memoryview(self._rows[self._saved : end]), self._saved)
        finally:
            os.close(fd)
        self._saved, self._unsynced = end, True

    def _rewrite_file(self, end: int) -> None:
        """Replace the file; a crash leaves the old or the new one."""
        assert self._rows is not None
        if end:
            draft = self.path.with_name(self.path.name + DRAFT)
            fd = open_regular(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                write_all(fd, memoryview(self._rows[:end]), 0)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(draft, self.path)
            self._entry_new = True
        else:
            self.path.unlink(missing_ok=True)
        self._saved, self._must_rewrite, self._unsynced = end, False, bool(end)

    def _sync(self) -> None:
        fd = open_regular(self.path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        if self._entry_new:  # Where a loss of power took the file, aborted transactions would count.
            sync_path(self.path.parent)
        self._unsynced = self._entry_new = False

    def _last(self, number: int) -> int:
        last: int = LAST.unpack_from(self.rows, number * ROW.size)[0]
        return last

    @property
    def _has_offset_index(self) -> bool:
        return self.path.with_name(self.path.name.replace(".txnindex", ".index")).exists()

    def _load(self) -> bytearray:
        try:
            rows = bytearray(read_whole(self.path))
        except FileNotFoundError:
            self._noted = self._base in read_aborting(self.path.parent)
            self.believed = not self._noted and self._has_offset_index
            return bytearray()
        check_rows(rows, self.path, self._base)
        return rows


def check_rows(rows: bytearray, path: Path, base_offset: int) -> None:
    """CorruptRecordError where the bytes cannot be the index of a segment that begins at `base_offset`."""
    if len(rows) % ROW.size:
        raise CorruptRecordError(f"{path} has {len(rows)} bytes, which is not a whole number of rows of {ROW.size}")
    before = base_offset
    for version, _, first, last, _ in ROW.iter_unpack(rows):
        if version != VERSION or not 0 <= first <= last or last < before:
            raise CorruptRecordError(
                f"{path} is damaged: version {version}, a transaction from offset {first} to {last} after {before}"
            )
        before = last


def read_aborting(directory: Path) -> set[int]:
    """Return the listed base offsets; none without a file, as for a log of another broker; all if the file is damaged."""
    return read_aborting_list(directory)[0]


def read_aborting_list(directory: Path) -> tuple[set[int], bool]:
    """Return the listed base offsets, and True if the file can be read."""
    try:
        return {base_offset for (base_offset,) in read_numbers(directory / FILE_NAME, 1)}, True
    except FileNotFoundError:
        return set(), True
    except (OSError, ValueError) as error:
        LOG.warning("%s is damaged: every segment is asked for aborted transactions: %s", directory / FILE_NAME, error)
        return {int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit()}, False


def record_aborting(directory: Path, base_offset: int, *, aborts: bool, sync: bool) -> None:
    """Add a segment to the list or remove it; segments that no longer exist are removed."""
    noted, whole = read_aborting_list(directory)
    if whole and (base_offset in noted) == aborts:
        return
    wanted = {each for each in noted if (directory / f"{each:020d}.log").exists()} - {base_offset}
    write_rows(
        directory / FILE_NAME, ([each] for each in sorted(wanted | ({base_offset} if aborts else set()))), sync=sync
    )
