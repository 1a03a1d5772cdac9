"""A follower of a partition: from where it fetches, where it cuts its log, and what it knows to be committed. Pure.

It tells the epoch of its last batch with every fetch, so that there is no second conversation before the first: the leader
answers with batches, or with where the two logs part. Then the follower cuts, and asks again from its new end. What it
appends it appends as it came, offsets and epochs included.

It learns of the high watermark one fetch late, and keeps it below its own end. It never goes back by itself; a cut takes it along.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.replication.epochs import EpochEnd, Starts, cut_at, epoch_at


class FetchFrom(NamedTuple):
    """What a follower asks its leader for."""

    offset: int
    last_epoch: int
    """Of the batch before that offset."""
    leader_epoch: int
    """Of the leader that it believes to ask."""


class Follower:
    """One partition, as a broker that copies it sees it."""

    def __init__(self, leader_epoch: int, high_watermark: int) -> None:
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark

    def next_fetch(self, starts: Starts, log_end: int) -> FetchFrom:
        """From its end on, whatever there is."""
        return FetchFrom(log_end, epoch_at(starts, log_end - 1), self.leader_epoch)

    def cut(self, starts: Starts, log_end: int, parting: EpochEnd) -> int:
        """The end that the log must have before it fetches again."""
        end = cut_at(starts, log_end, parting)
        self.high_watermark = min(self.high_watermark, end)
        return end

    def append(self, log_end: int, leaders_watermark: int) -> None:
        """The log ends there now, and the leader has committed so much."""
        self.high_watermark = max(self.high_watermark, min(leaders_watermark, log_end))
