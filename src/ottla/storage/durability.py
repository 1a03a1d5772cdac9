"""How much of a log is on the disk, and forcing the rest there."""

from __future__ import annotations

from ottla.storage.durable import sync_path
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_config import LogConfig
from ottla.storage.segment import Segment
from ottla.storage.segment_list import SegmentList


class Durability:
    """Of one log. `flush` may run beside appends; everything else belongs to the log's own thread."""

    __slots__ = ("_epochs", "_list", "entries_changed", "recovery_point", "unflushed_since_ms")

    def __init__(self, segments: SegmentList, epochs: LeaderEpochs) -> None:
        self._list = segments
        self._epochs = epochs
        self.recovery_point = 0
        """Everything below this offset is known to be on the disk."""
        self.unflushed_since_ms: int | None = None
        """When the first record came that is not."""
        self.entries_changed = False
        """Whether there are files of which the folder on the disk may not know."""

    def due(self, end_offset: int, config: LogConfig, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` ask for a flush, or a full segment awaits one."""
        unflushed = end_offset - self.recovery_point
        if not unflushed:
            return False
        since = self.unflushed_since_ms
        late = since is not None and now_ms - since >= config.flush_ms
        return unflushed >= config.flush_messages or late or self.recovery_point < self._list.bases[-1]

    @property
    def unforced(self) -> bool:
        """Whether there is anything that a flush would have to force."""
        return self.entries_changed or any(segment.changed for segment in self._list.segments)

    def flush(self, end_offset: int, *, sync: bool) -> None:
        """Force what lies below `end_offset` to the disk, indexes and folder entries included; OSError where it fails."""
        entries_changed = self.entries_changed
        self.unflushed_since_ms, self.entries_changed = None, False
        try:
            for segment in self._list.segments[:]:
                self._flush_segment(segment, sync)
            self._epochs.flush(sync=sync)
            if entries_changed and sync:
                sync_path(self._list.directory)
                sync_path(self._list.directory.parent)
        except OSError:
            self.entries_changed = self.entries_changed or entries_changed
            raise
        self.recovery_point = end_offset

    def _flush_segment(self, segment: Segment, sync: bool) -> None:
        try:
            segment.flush(sync=sync)
        except FileNotFoundError:
            if segment in self._list.segments:
                raise
            # Retention took it while we were at it.
