"""Flush a log: force its files to the disk in a fixed order, then move the recovery point.

    appended ──► written to the system ──────► forced ──► below the recovery point
                  └ survives the broker          └ survives the machine

An append writes its batches to the operating system and forces nothing to the disk. A killed process loses nothing that was written. A
machine that fails may lose everything at or above the recovery point, so a start after a crash checks every CRC there. Only a flush
raises the recovery point, to the log's end at the start of the flush. An append moves the end last, so everything below the end was
written by then. Batches that are appended during a flush wait for the next one.

A crash may happen between any two steps of a flush, so their order matters:

1. The segments, oldest first, so that no complete segment follows an incomplete one. In each segment the batches are forced before the
   indexes, so that no index entry leads to a missing batch.
2. `segment-succession`, which is written and not forced.
3. `leader-epoch-checkpoint`.
4. The entries of the log's directory and of its parent, if files were created or deleted.
5. The recovery point in memory. `DataDirectory.prepare_checkpoint` writes it to the checkpoint file later.

If a step fails, the recovery point stays, and the next flush starts again. Batches of a file that could not be forced are first written
again, because the operating system may have dropped them (`Segment.unforced_batches`).

The broker flushes when a segment is full, after `flush.ms`, and, for `flush.messages`, before the response to a producer. `close` flushes
too. A directory with many logs writes all of them at a shutdown without `sync` and then forces the whole file system once.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from threading import Lock

from ottla.model import INT64_MAX
from ottla.storage.files.durable import sync_path
from ottla.storage.files.open_file import write_all
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_list import SegmentList
from ottla.storage.segments.succession import Row, row_of, write_rows


class Durability:
    """The durability of one log. `flush` may run in another thread during appends; everything else belongs to the log's thread."""

    __slots__ = ("_cuts", "_epochs", "_list", "_lock", "entries_changed", "forced_to")

    def __init__(self, segments: SegmentList, epochs: LeaderEpochs) -> None:
        self._list = segments
        self._epochs = epochs
        self._lock = Lock()
        self._cuts = 0
        """The number of truncations. A flush that runs during a truncation must not raise the recovery point."""
        self.forced_to = 0
        """The recovery point: everything below this offset is known to be on the disk."""
        self.entries_changed = False
        """True if there may be files without a directory entry on the disk."""

    @property
    def has_unforced(self) -> bool:
        """True if a flush would have anything to force."""
        return self.entries_changed or any(segment.changed for segment in self._list.segments)

    def lower_recovery_point(self, offset: int) -> None:
        """Lower the recovery point to an offset, before the log is truncated there. A flush that is running does not raise it again."""
        with self._lock:
            self._cuts += 1
            for segment in self._list.segments:
                segment.mark_unforced()
            self.forced_to = min(self.forced_to, offset)

    def flush(self, end_offset: int, *, sync: bool) -> None:
        """Force everything below `end_offset` to the disk, including indexes and directory entries. Raises OSError if that fails."""
        cuts = self._cuts
        entries_changed = self.entries_changed
        self.entries_changed = False
        try:
            for segment in self._list.segments[:]:
                self._flush_segment(segment, sync)
            if self._list.unnoted:
                self._record_succession()
            self._epochs.flush(end_offset, sync=sync)
            if entries_changed and sync:
                sync_path(self._list.directory)
                sync_path(self._list.directory.parent)
        except OSError:
            self.entries_changed = self.entries_changed or entries_changed
            raise
        with self._lock:
            if cuts == self._cuts:
                self.forced_to = end_offset

    def _record_succession(self) -> None:
        rows = dict(self._iter_full_segments())
        # Read after the files: a segment that was replaced meanwhile is not among them.
        present = set(self._list.segments)
        write_rows(self._list.directory, (row for segment, row in rows.items() if segment in present), self._list.bases)

    def _iter_full_segments(self) -> Iterator[tuple[Segment, Row]]:
        """Yield the rows of the segments that became full since the last flush."""
        while self._list.unnoted:
            segment = self._list.unnoted.popleft()
            try:
                row = row_of(segment.path, segment.ranges.expected_next_base(segment.size, segment.next_base))
            except FileNotFoundError:
                continue  # Retention has deleted it meanwhile.
            if row.size_bytes == segment.size and row.next_offset != INT64_MAX:
                yield segment, row

    def _flush_segment(self, segment: Segment, sync: bool) -> None:
        try:
            if segment.doubted:
                self._write_again(segment)
            segment.flush(sync=sync)
        except FileNotFoundError:
            if segment in self._list.segments:
                raise
            # Retention has deleted it meanwhile.

    def _write_again(self, segment: Segment) -> None:
        """Write the batches again that the system may have dropped; stop if the log is truncated at the same time."""
        cuts, file = self._cuts, segment.writable_file()
        try:
            for position, data in segment.unforced_batches():
                with self._lock:
                    if cuts != self._cuts:
                        break
                    write_all(file.fileno(), memoryview(data), position)
        except OSError:
            if cuts == self._cuts:
                raise
        if cuts != self._cuts:
            raise OSError(errno.EAGAIN, "the log was cut while it was written again")
