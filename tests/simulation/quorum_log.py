"""The metadata's log of a simulated node, on a disk that may lose what was not forced to it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.coordination.quorum.log_shape import BOOTSTRAP, LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voters import VoterSet
from ottla.coordination.quorum.voters_record import VotersRecord


class Entry(NamedTuple):
    """A record, in a batch of its own; the epoch is the leader's."""

    epoch: int
    value: Any


class Snapshot(NamedTuple):
    """All records below its end, and the voters at that point."""

    id: SnapshotId
    entries: tuple[Entry, ...]
    voters: VoterSet


class QuorumLog:
    """Records from `start` on, and a snapshot for those before."""

    def __init__(self, voters: VoterSet) -> None:
        self.start = 0
        self.entries: list[Entry] = []
        self.flushed = 0
        self.saved: ElectionState | None = None
        self.snapshot = Snapshot(BOOTSTRAP, (), voters)
        self.cut_snapshot = self.snapshot
        """The snapshot of the records before the start."""
        self.starts: list[tuple[int, int]] = []

    @property
    def end(self) -> int:
        return self.start + len(self.entries)

    def at(self, offset: int) -> Entry | None:
        """Return the record at the offset; None if it is only in a snapshot."""
        return self.entries[offset - self.start] if self.start <= offset < self.end else None

    def whole(self, end: int) -> tuple[Entry, ...]:
        """Everything below an offset."""
        return (*self.cut_snapshot.entries, *self.entries[: end - self.start])

    def append(self, entry: Entry) -> None:
        if not self.starts or self.starts[-1][0] < entry.epoch:
            self.starts.append((entry.epoch, self.end))
        self.entries.append(entry)

    def truncate(self, end: int) -> None:
        assert self.start <= end <= self.end
        del self.entries[end - self.start :]
        self.starts = [start for start in self.starts if start[1] < end]
        self.flushed = min(self.flushed, end)

    def flush(self) -> None:
        self.flushed = self.end

    def take_snapshot(self, end: int, *, cut: bool) -> None:
        """Take a snapshot of committed records. With `cut` the log starts at its end."""
        last = self.at(end - 1)
        if last is None or end > self.flushed:
            return
        self.snapshot = Snapshot(SnapshotId(end, last.epoch), self.whole(end), self._voters(end)[0])
        if cut:
            self.begin_at(self.snapshot, self.entries[end - self.start :])

    def begin_at(self, snapshot: Snapshot, rest: list[Entry]) -> None:
        """Replace all records before with a snapshot."""
        self.snapshot = self.cut_snapshot = snapshot
        self.start, self.entries, self.starts = snapshot.id.end_offset, [], []
        for entry in rest:
            self.append(entry)
        self.flushed = max(self.flushed, self.start) if rest else self.end

    def _voters(self, end: int) -> tuple[VoterSet, int]:
        """By the last record below an offset, and where that ends."""
        for index in range(min(end, self.end) - self.start - 1, -1, -1):
            value = self.entries[index].value
            if isinstance(value, VotersRecord):
                return VoterSet(value.voters), self.start + index + 1
        return self.cut_snapshot.voters, self.start

    def shape(self) -> LogShape:
        voters, voters_end = self._voters(self.end)
        return LogShape(
            self.start,
            self.end,
            tuple(self.starts),
            self.flushed,
            self.snapshot.id,
            self.cut_snapshot.id.epoch,
            voters,
            voters_end,
        )
