"""The effect of a leader's fetch response on a follower's partition. Pure.

batches, high watermark ──► append         the logs diverge ──► truncate
out of the leader's range ──► request the range of its log; then truncate, or delete the log and start at the leader's start offset
another leader epoch, or no leader ──► retry after a pause: the metadata will be newer
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.replication.epochs import EpochEnd
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import PartitionData

SOON_SECONDS = 0.1
"""The leader or this follower has older metadata than the other."""
LATER_SECONDS = 1.0
"""`replica.fetch.backoff.ms`"""


class AppendBatches(NamedTuple):
    """The next batches, possibly none, the high watermark, and the leader's log start offset."""

    records: memoryview
    high_watermark: int
    log_start_offset: int


class TruncateDiverged(NamedTuple):
    """The logs part: the leader's ends there in that epoch."""

    parting: EpochEnd


class RequestRange(NamedTuple):
    """The leader has no use for this fetch offset: request the start and end of its log."""


class RetryLater(NamedTuple):
    """Retry after this number of seconds."""

    seconds: float
    code: int


class RestartAt(NamedTuple):
    """Delete the log and start at this offset: the leader has deleted everything before it."""

    offset: int


class TruncateTo(NamedTuple):
    """The leader has nothing from this offset on."""

    offset: int


FetchOutcome = AppendBatches | TruncateDiverged | RequestRange | RetryLater
RangeOutcome = RestartAt | TruncateTo | None
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
"""The metadata of one side is outdated."""


def decide_fetched(data: PartitionData) -> FetchOutcome:
    """Return the effect of a response."""
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return RequestRange()
    if data.error_code:
        return RetryLater(SOON_SECONDS if data.error_code in NOT_YET else LATER_SECONDS, data.error_code)
    if data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
        return TruncateDiverged(EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset))
    return AppendBatches(memoryview(data.records or b""), data.high_watermark, data.log_start_offset)


def decide_out_of_range(
    log_end: int, leaders_start: int, leaders_end: int, fetch_offset: int | None = None
) -> RangeOutcome:
    """Return the action of a follower outside its leader's range; None if it is in range now.

    It fetches from the end of its log, or from a lower offset from which on the log is damaged.
    """
    if log_end > leaders_end:
        return TruncateTo(leaders_end)
    lacks_from = log_end if fetch_offset is None else fetch_offset
    return RestartAt(leaders_start) if lacks_from < leaders_start else None
