"""The start offset of each leader epoch in a log, and where two logs diverge (KIP-101, KIP-279). Pure.

Two logs are equal up to the end of the latest epoch that both have, limited to the shorter one: within an epoch one leader wrote, and every
follower copied from it. A follower sends the epoch of its last batch, and the leader returns the end of that epoch in its own
log. If that is less than the follower's end, or the leader only has an earlier epoch, the logs diverge there. The high watermark
cannot tell: a follower receives it late, and a follower that truncated to it would lose acknowledged records when it became leader.
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
    """Return the latest epoch up to `wanted` and where it ends; UNKNOWN_END where `wanted` is none, or later than all."""
    if wanted < 0 or not starts or wanted > starts[-1][0]:
        return UNKNOWN_END
    number = bisect_right(starts, wanted, key=itemgetter(0))
    end = log_end if number == len(starts) else starts[number][1]
    return EpochEnd(starts[number - 1][0] if number else wanted, end)


def epoch_at(starts: Starts, offset: int) -> int:
    """Return the epoch of what lies at an offset; NO_EPOCH before the first."""
    number = bisect_right(starts, offset, key=itemgetter(1))
    return starts[number - 1][0] if number else NO_EPOCH


def find_divergence(starts: Starts, log_end: int, offset: int, last_epoch: int) -> EpochEnd | None:
    """Return the end of the epoch at which a follower's log diverges from this one; the follower fetches from `offset` and its last batch has `last_epoch`.

    Return None if it does not diverge, and UNKNOWN_END if this log has no such epoch: the fetch is out of range.
    """
    if last_epoch == NO_EPOCH:
        return None
    end = end_of(starts, last_epoch, log_end)
    return end if end.offset < offset or end.epoch < last_epoch else None  # UNKNOWN_END is less than all


def truncation_offset(starts: Starts, log_end: int, leader: EpochEnd) -> int:
    """Return the offset to which a follower truncates its log, after the leader returned where the logs diverge.

    If the follower has no batch of that epoch, it truncates to the end of the latest earlier one and fetches again.
    """
    mine = end_of(starts, leader.epoch, log_end)
    if mine == UNKNOWN_END:
        return min(log_end, leader.offset)
    if mine.epoch != leader.epoch:
        return min(mine.offset, log_end)
    return min(mine.offset, leader.offset, log_end)
