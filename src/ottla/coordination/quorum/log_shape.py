"""What the quorum knows of a log: where it begins and ends, in which epochs, and what of it a crash cannot take. No log in it."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.voters import NOBODY, VoterSet
from ottla.coordination.replication.epochs import EpochEnd, Starts, cut_at, end_of


class SnapshotId(NamedTuple):
    """A snapshot stands for all below `end_offset`; `epoch` is that of the last record in it."""

    end_offset: int
    epoch: int


BOOTSTRAP = SnapshotId(0, 0)
"""The snapshot that a formatted directory begins with holds nothing of the log."""


class LogShape(NamedTuple):
    """A log at one moment."""

    start: int = 0
    end: int = 0
    starts: Starts = ()
    """Each epoch in it, and where that began."""
    durable: int = 0
    """The end of what is on the disk."""
    snapshot: SnapshotId = BOOTSTRAP
    """The newest; where the log does not begin at 0, one of its start or later."""
    start_epoch: int = 0
    """Of the record before the start, which is only in a snapshot."""
    voters: VoterSet = NOBODY
    """By the last record that tells of them, committed or not."""
    voters_end: int = 0
    """The offset behind that record; 0 where the bootstrap snapshot, or the settings, say who votes."""
    kraft_version: int = 1
    holds_metadata: bool = False
    """Whether anything is in it besides what the quorum says of itself: somebody decides over that, and writes it here."""

    @property
    def epoch(self) -> int:
        """Of the last record, be that only in a snapshot."""
        return self.starts[-1][0] if self.starts else self.start_epoch

    @property
    def position(self) -> tuple[int, int]:
        """By which logs are compared: whose is greater lacks nothing that the other might have committed."""
        return self.epoch, self.end

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The latest epoch up to that one, and where it ends here."""
        if not self.starts or (self.start and epoch < self.starts[0][0]):
            return EpochEnd(self.start_epoch, self.start)
        return end_of(self.starts, min(epoch, self.epoch), self.end)

    def needs_snapshot(self, offset: int, epoch: int) -> bool:
        """Whether who has all below `offset`, the last of it of `epoch`, can only be helped by a snapshot."""
        if self.snapshot == BOOTSTRAP:
            return False
        if offset == 0:
            return True  # it is less to copy
        return self.start > 0 and (offset < self.start or epoch < self.start_epoch)

    def parting(self, offset: int, epoch: int) -> EpochEnd | None:
        """Where a log that ends at `offset` with a record of `epoch` parts from this one; None where it is a part of this one."""
        if offset == 0:
            return None
        end = self.end_of_epoch(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def cut(self, leader: EpochEnd) -> int:
        """Where to cut this log, which parts from the leader's there."""
        return max(self.start, cut_at(self.starts, self.end, leader))
