"""What a leader's answer means for a follower of a partition. Pure.

batches, high watermark ──► append         where the logs part ──► cut
out of the leader's range ──► ask where its log begins and ends, then cut, or begin anew there
an epoch that is not the leader's, no leader at all ──► ask again in a moment: the metadata say more by then
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.replication.epochs import EpochEnd
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import PartitionData

SOON_SECONDS = 0.1
"""The leader, or this follower, has not heard yet what the other has."""
LATER_SECONDS = 1.0
"""`replica.fetch.backoff.ms`"""


class Append(NamedTuple):
    """Batches that come next, perhaps none, what is committed of them, and from where on the leader has any."""

    records: memoryview
    high_watermark: int
    log_start_offset: int


class Cut(NamedTuple):
    """The logs part: the leader's ends there in that epoch."""

    parting: EpochEnd


class AskForRange(NamedTuple):
    """Nothing here is of use to the leader: where does its log begin, and end?"""


class Wait(NamedTuple):
    """Ask again after so many seconds."""

    seconds: float
    code: int


class BeginAnew(NamedTuple):
    """Nothing of the copy is of use: everything before this offset is gone at the leader."""

    offset: int


class CutAt(NamedTuple):
    """The leader has nothing from this offset on."""

    offset: int


Outcome = Append | Cut | AskForRange | Wait
RangeOutcome = BeginAnew | CutAt | None
NOT_YET = frozenset(
    (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""Somebody is behind with the metadata."""


def outcome_of(data: PartitionData) -> Outcome:
    """What to do about an answer."""
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return AskForRange()
    if data.error_code:
        return Wait(SOON_SECONDS if data.error_code in NOT_YET else LATER_SECONDS, data.error_code)
    if data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
        return Cut(EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset))
    return Append(memoryview(data.records or b""), data.high_watermark, data.log_start_offset)


def within_range(log_end: int, leaders_start: int, leaders_end: int, fetch_offset: int | None = None) -> RangeOutcome:
    """What a follower does that is out of its leader's range; None where it is not any more.

    It fetches from its log's end, or from an offset below where it is damaged.
    """
    if log_end > leaders_end:
        return CutAt(leaders_end)
    lacks_from = log_end if fetch_offset is None else fetch_offset
    return BeginAnew(leaders_start) if lacks_from < leaders_start else None
