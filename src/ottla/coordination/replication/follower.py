"""A follower of a partition: its fetch offset, truncation, and its high watermark. Pure.

Each fetch has the epoch of the follower's last batch (KIP-595), so no OffsetsForLeaderEpoch precedes it: the leader returns batches, or where
the logs diverge. The follower then truncates, and fetches from its new end. It appends batches unchanged, with their offsets and
epochs.

It receives the high watermark one fetch late and limits it to its own end. The watermark decreases only by a truncation.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.replication.epochs import EpochEnd, Starts, epoch_at, truncation_offset


class FetchFrom(NamedTuple):
    """The position at which a follower fetches next."""

    offset: int
    last_epoch: int
    """The epoch of the batch before that offset."""
    leader_epoch: int
    """The epoch of the leader that it fetches from."""


class Follower:
    """One partition, as a broker that copies it sees it."""

    def __init__(self, leader_epoch: int, high_watermark: int) -> None:
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark

    def next_fetch(self, starts: Starts, log_end: int) -> FetchFrom:
        """From its end on, whatever there is."""
        return FetchFrom(log_end, epoch_at(starts, log_end - 1), self.leader_epoch)

    def truncation_end(self, starts: Starts, log_end: int, parting: EpochEnd) -> int:
        """Return the end that the log must have before it fetches again."""
        end = truncation_offset(starts, log_end, parting)
        self.high_watermark = min(self.high_watermark, end)
        return end

    def append(self, log_end: int, leaders_watermark: int) -> None:
        """Record the new end of the log and the high watermark of the leader."""
        self.high_watermark = max(self.high_watermark, min(leaders_watermark, log_end))
