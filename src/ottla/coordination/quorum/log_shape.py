"""A description of the metadata log at one moment: start, end, epochs, the flushed part, snapshots and voters."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.voters import NO_VOTERS, VoterSet
from ottla.coordination.replication.epochs import EpochEnd, Starts, cut_at, end_of


class SnapshotId(NamedTuple):
    """A snapshot replaces all records below `end_offset`; `epoch` is that of its last record."""

    end_offset: int
    epoch: int


BOOTSTRAP = SnapshotId(0, 0)
"""The snapshot of a newly formatted directory; it replaces no record of the log."""


class LogShape(NamedTuple):
    """The log as the quorum's rules see it."""

    start: int = 0
    end: int = 0
    starts: Starts = ()
    """Each epoch in the log, with its start offset."""
    durable: int = 0
    """The end of what is flushed to the disk."""
    snapshot: SnapshotId = BOOTSTRAP
    """The newest snapshot. If the log does not start at 0, the snapshot ends at the log's start or later."""
    start_epoch: int = 0
    """The epoch of the last record before the log's start, which is only in a snapshot."""
    voters: VoterSet = NO_VOTERS
    """The voters by the last VotersRecord, committed or not."""
    voters_end: int = 0
    """The offset after that record; 0 if the voters come from the bootstrap snapshot or from the settings."""
    kraft_version: int = 1
    holds_metadata: bool = False
    """True if the log or its snapshot has records other than control records, written by an active controller."""

    @property
    def epoch(self) -> int:
        """The epoch of the last record, which may be only in a snapshot."""
        return self.starts[-1][0] if self.starts else self.start_epoch

    @property
    def position(self) -> tuple[int, int]:
        """The key that orders logs: the greater log has every record that the other may have committed."""
        return self.epoch, self.end

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the latest epoch up to `epoch`, and its end offset in this log."""
        if not self.starts or (self.start and epoch < self.starts[0][0]):
            return EpochEnd(self.start_epoch, self.start)
        return end_of(self.starts, min(epoch, self.epoch), self.end)

    def needs_snapshot(self, offset: int, epoch: int) -> bool:
        """True if a replica that ends at `offset`, with a last record of `epoch`, has to fetch a snapshot."""
        if self.snapshot == BOOTSTRAP:
            return False
        if offset == 0:
            return True  # a snapshot is smaller than the log
        return self.start > 0 and (offset < self.start or epoch < self.start_epoch)

    def divergence(self, offset: int, epoch: int) -> EpochEnd | None:
        """Return the epoch and offset at which a log diverges from this one; None if it is a prefix of this one.

        The other log ends at `offset` with a record of `epoch`.
        """
        if offset == 0:
            return None
        end = self.end_of_epoch(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def truncation_offset(self, leader: EpochEnd) -> int:
        """Return the offset to truncate this log to, given the end of an epoch in the leader's log."""
        return max(self.start, cut_at(self.starts, self.end, leader))
