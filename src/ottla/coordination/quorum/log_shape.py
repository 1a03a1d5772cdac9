"""A description of the metadata log at one moment: start, end, epochs, the flushed part, snapshots and voters."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.voters import NO_VOTERS, VoterSet
from ottla.coordination.replication.epochs import EpochEnd, Starts, end_of, truncation_offset


class SnapshotId(NamedTuple):
    """The name of a snapshot, which replaces all records below `end_offset`. `epoch` is the epoch of the last replaced record."""

    end_offset: int
    epoch: int


BOOTSTRAP = SnapshotId(0, 0)
"""The snapshot of a newly formatted directory; it replaces no record of the log."""


class LogShape(NamedTuple):
    """The properties of the log that elections, replication and commits depend on."""

    start: int = 0
    end: int = 0
    starts: Starts = ()
    """Each epoch in the log, with its start offset."""
    durable: int = 0
    """Every record below this offset is flushed to the disk."""
    snapshot: SnapshotId = BOOTSTRAP
    """The newest snapshot. If the log does not start at 0, the snapshot ends at the log's start or later."""
    start_epoch: int = 0
    """The epoch of the record before `start`. The log has this record no longer; a snapshot replaces it."""
    voters: VoterSet = NO_VOTERS
    """The voters that the last VotersRecord lists. The record may be uncommitted."""
    voters_end: int = 0
    """The offset after the last VotersRecord; 0 if the bootstrap snapshot or the settings list the voters."""
    kraft_version: int = 1
    holds_metadata: bool = False
    """True if an active controller has written to the log: the log or its snapshot has records other than control records."""

    @property
    def epoch(self) -> int:
        """The epoch of the last record. If the log is empty, that is the last record which its snapshot replaces."""
        return self.starts[-1][0] if self.starts else self.start_epoch

    @property
    def position(self) -> tuple[int, int]:
        """The key by which elections compare logs: the epoch of the last record, then the end offset.

        If the position of a log is not less than that of another, it has every committed record of the other log (Raft, 5.4.1).
        """
        return self.epoch, self.end

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the greatest epoch of this log that is not greater than `epoch`, and the offset at which it ends."""
        if not self.starts or (self.start and epoch < self.starts[0][0]):
            return EpochEnd(self.start_epoch, self.start)
        return end_of(self.starts, min(epoch, self.epoch), self.end)

    def needs_snapshot(self, offset: int, epoch: int) -> bool:
        """Return True if a replica has to fetch a snapshot. Its log ends at `offset`; the last record is of `epoch`."""
        if self.snapshot == BOOTSTRAP:
            return False
        if offset == 0:
            return True  # a snapshot is smaller than the log
        return self.start > 0 and (offset < self.start or epoch < self.start_epoch)

    def divergence(self, offset: int, epoch: int) -> EpochEnd | None:
        """Compare a follower's log with this one: it ends at `offset`, and its last record is of `epoch`.

        Return None if it is a prefix of this log. Otherwise return an epoch of this log, not greater than `epoch`, and its end:
        the follower truncates its log to this end or to an earlier offset (`truncation_offset`).
        """
        if offset == 0:
            return None
        end = self.end_of_epoch(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def truncation_offset(self, leader: EpochEnd) -> int:
        """Return the offset to truncate this log to, given the end of an epoch in the leader's log."""
        return max(self.start, truncation_offset(self.starts, self.end, leader))
