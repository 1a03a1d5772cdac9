"""Where each leader's time began in a log, and where two logs part (KIP-101, KIP-279). Pure.

Two logs are the same up to the end of the latest epoch that both have, cut at the shorter of the two: within an epoch one leader wrote,
and everybody copied from it. So a follower that tells the epoch of its last batch is told by the leader where that epoch ends
in *its* log; if that is before the follower's own end, or the leader knows only an earlier epoch, they parted there.
The high watermark says nothing about it: a follower learns of it late, and one that cuts its log there loses what
was acknowledged when it becomes the leader itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEnd(NamedTuple):
    """An epoch, and the offset behind its last batch."""

    epoch: int
    offset: int


UNKNOWN_END = EpochEnd(NO_EPOCH, NO_OFFSET)
Starts = Sequence[tuple[int, int]]
"""Epochs and their first offsets, both increasing."""


def end_of(starts: Starts, wanted: int, log_end: int) -> EpochEnd:
    """The latest epoch up to `wanted` and where it ends; UNKNOWN_END where `wanted` is none, or later than all."""
    if wanted < 0 or not starts or wanted > starts[-1][0]:
        return UNKNOWN_END
    number = bisect_right(starts, wanted, key=itemgetter(0))
    end = log_end if number == len(starts) else starts[number][1]
    return EpochEnd(starts[number - 1][0] if number else wanted, end)


def epoch_at(starts: Starts, offset: int) -> int:
    """The epoch of what lies at an offset; NO_EPOCH before the first."""
    number = bisect_right(starts, offset, key=itemgetter(1))
    return starts[number - 1][0] if number else NO_EPOCH


def parting(starts: Starts, log_end: int, offset: int, last_epoch: int) -> EpochEnd | None:
    """Where the log of who fetches from `offset`, whose last batch is of `last_epoch`, parts from this one.

    None where it does not. UNKNOWN_END where this log cannot tell: the fetch is out of range.
    """
    if last_epoch == NO_EPOCH:
        return None
    end = end_of(starts, last_epoch, log_end)
    return end if end.offset < offset or end.epoch < last_epoch else None  # UNKNOWN_END is less than all


def cut_at(starts: Starts, log_end: int, leader: EpochEnd) -> int:
    """Where a follower cuts its log that was told where it parts from the leader's.

    Where it has no batch of that epoch it cuts at the end of the latest one before, and asks again from there.
    """
    mine = end_of(starts, leader.epoch, log_end)
    if mine == UNKNOWN_END:
        return min(log_end, leader.offset)
    if mine.epoch != leader.epoch:
        return min(mine.offset, log_end)
    return min(mine.offset, leader.offset, log_end)
