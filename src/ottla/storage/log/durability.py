"""How much of a log is on the disk, and forcing the rest there.

    appended ──► the system has it ──────────► forced ──► below the recovery point
                  └ outlives the broker          └ outlives the machine

An append writes and forces nothing. A process that is killed loses none of it; a machine that goes down may lose whatever lies at or
above the recovery point, and so a start after a crash believes nothing there without its CRC. Only a flush moves that point, to the
log's end as it was when the flush began: an append tells the end last, so all below it was written by then, and what is
appended meanwhile waits for the next flush.

The order is what a crash in between needs. Segments go oldest first, so that there is never a hole with something whole behind it.
In each the batches go before the indexes, which so never lead to what is not there. Then a note of which segment follows which, and the leader epochs, then the folder's own
entries, where files are new. Where one of these fails the point stays, and all that was not forced is tried again: batches whose file could
not be forced are written again first, since the system may have dropped them (`Segment.unforced_batches`).

Who asks: the broker's flusher, as soon as a segment is full, after `flush.ms`, and for `flush.messages` before it answers; and
`close`. A directory with many logs has them only written at a shutdown, and forces the file system once.
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
from ottla.storage.segments.succession import Row, note, row_of


class Durability:
    """Of one log. `flush` may run beside appends; everything else belongs to the log's own thread."""

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
        """Whether there are files of which the folder on the disk may not know."""

    @property
    def unforced(self) -> bool:
        """Whether there is anything that a flush would have to force."""
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
        note(self._list.directory, (row for segment, row in rows.items() if segment in present), self._list.bases)

    def _rows(self) -> Iterator[tuple[Segment, Row]]:
        """What follows each of the segments that are full since the last flush."""
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
        """What may have been dropped; nothing behind a cut that comes meanwhile."""
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
