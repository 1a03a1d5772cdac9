"""The part of a log that is on the disk, and forcing the rest to it.

    appended ──► written to the system ──────► forced ──► below the recovery point
                  └ survives the broker          └ survives the machine

An append writes and forces nothing. A killed process loses nothing; a machine that fails may lose everything at or above the recovery
point, so that a start after a crash trusts nothing there without its CRC. Only a flush moves that point, to the log's end at the start
of the flush: an append moves the end last, so that everything below it was written by then, and what is appended during the flush waits
for the next one.

A crash may happen between any two steps, so their order matters. Segments are forced from the oldest, so that no whole segment follows a
hole. In each the batches are forced before the indexes, so that no index leads to a missing batch. Then the succession of segments, the
leader epochs and, if files are new, the directory entries are written. If one of these fails, the recovery point stays and everything
that was not forced is tried again; batches of a file that could not be forced are first written again, because the system may have dropped
them (`Segment.unforced_batches`).

A flush is started by the broker's flusher, when a segment is full, after `flush.ms`, and for `flush.messages` before the response; and by
`close`. A directory with many logs writes them at a shutdown and forces the file system once.
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
from ottla.storage.segments.succession import Row, note_rows, row_of


class Durability:
    """The durability of one log. `flush` may run in another thread during appends; everything else belongs to the log's thread."""

    __slots__ = ("_cuts", "_epochs", "_list", "_lock", "entries_changed", "forced_to")

    def __init__(self, segments: SegmentList, epochs: LeaderEpochs) -> None:
        self._list = segments
        self._epochs = epochs
        self._lock = Lock()
        self._cuts = 0
        """How often the log was cut: a flush that was under way does not know where it ends now."""
        self.forced_to = 0
        """Everything below this offset is known to be on the disk, as it was appended."""
        self.entries_changed = False
        """True if there may be files without a directory entry on the disk."""

    @property
    def unforced(self) -> bool:
        """True if a flush would have anything to force."""
        return self.entries_changed or any(segment.changed for segment in self._list.segments)

    def lower(self, offset: int) -> None:
        """Before the log is cut there: whatever is under way, nothing from that offset on is on the disk."""
        with self._lock:
            self._cuts += 1
            for segment in self._list.segments:
                segment.mark_unforced()
            self.forced_to = min(self.forced_to, offset)

    def flush(self, end_offset: int, *, sync: bool) -> None:
        """Force what lies below `end_offset` to the disk, indexes and folder entries included; OSError where it fails."""
        cuts = self._cuts
        entries_changed = self.entries_changed
        self.entries_changed = False
        try:
            for segment in self._list.segments[:]:
                self._flush_segment(segment, sync)
            if self._list.unnoted:
                self._note_succession()
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

    def _note_succession(self) -> None:
        rows = dict(self._rows())
        # Asked after their files: what has another in its place by now is none of them.
        present = set(self._list.segments)
        note_rows(self._list.directory, (row for segment, row in rows.items() if segment in present), self._list.bases)

    def _rows(self) -> Iterator[tuple[Segment, Row]]:
        """Yield the rows of the segments that became full since the last flush."""
        while self._list.unnoted:
            segment = self._list.unnoted.popleft()
            try:
                row = row_of(segment.path, segment.ranges.expected_next_base(segment.size, segment.next_base))
            except FileNotFoundError:
                continue  # Retention took it while we were at it.
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
            # Retention took it while we were at it.

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
