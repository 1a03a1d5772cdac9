"""The actions of a follower for its leader's responses."""

from __future__ import annotations

import pytest

from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.fetched import (
    LATER_SECONDS,
    SOON_SECONDS,
    AppendBatches,
    RangeOutcome,
    RequestRange,
    RestartAt,
    RetryLater,
    TruncateDiverged,
    TruncateTo,
    decide_fetched,
    decide_out_of_range,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import EpochEndOffset, PartitionData


def test_batches_include_the_high_watermark_and_the_log_start_of_the_leader() -> None:
    data = PartitionData(0, high_watermark=9, log_start_offset=3, records=b"abc")
    assert decide_fetched(data) == AppendBatches(memoryview(b"abc"), 9, 3)
    assert decide_fetched(PartitionData(0, high_watermark=9)) == AppendBatches(memoryview(b""), 9, -1)


def test_nothing_is_appended_at_a_divergence() -> None:
    data = PartitionData(0, high_watermark=9, diverging_epoch=EpochEndOffset(4, 7), records=b"abc")
    assert decide_fetched(data) == TruncateDiverged(EpochEnd(4, 7))
    # What Kafka sends where nothing parts: the default of the field.
    assert isinstance(decide_fetched(PartitionData(0, diverging_epoch=EpochEndOffset())), AppendBatches)


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        (ErrorCode.UNKNOWN_LEADER_EPOCH, SOON_SECONDS),
        (ErrorCode.FENCED_LEADER_EPOCH, SOON_SECONDS),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, SOON_SECONDS),
        (ErrorCode.UNKNOWN_TOPIC_ID, SOON_SECONDS),
        (ErrorCode.KAFKA_STORAGE_ERROR, LATER_SECONDS),
        (ErrorCode.CORRUPT_MESSAGE, LATER_SECONDS),
    ],
)
def test_a_fetch_rejected_because_of_stale_metadata_is_retried_soon(code: ErrorCode, seconds: float) -> None:
    assert decide_fetched(PartitionData(0, code, diverging_epoch=EpochEndOffset(4, 7))) == RetryLater(seconds, code)


def test_an_out_of_range_follower_requests_the_range() -> None:
    assert decide_fetched(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE)) == RequestRange()


@pytest.mark.parametrize(
    ("log_end", "outcome"),
    [(9, RestartAt(10)), (10, None), (15, None), (20, None), (21, TruncateTo(20))],
)
def test_an_out_of_range_replica_is_truncated_or_reset(log_end: int, outcome: RangeOutcome) -> None:
    assert decide_out_of_range(log_end, 10, 20) == outcome
