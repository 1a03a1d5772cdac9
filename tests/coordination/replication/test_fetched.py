"""What a leader's answers mean for a follower."""

from __future__ import annotations

import pytest

from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.fetched import (
    LATER_SECONDS,
    SOON_SECONDS,
    Append,
    AskForRange,
    BeginAnew,
    Cut,
    CutAt,
    RangeOutcome,
    Wait,
    outcome_of,
    within_range,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import EpochEndOffset, PartitionData


def test_batches_come_with_what_is_committed_and_where_the_leaders_log_begins() -> None:
    data = PartitionData(0, high_watermark=9, log_start_offset=3, records=b"abc")
    assert outcome_of(data) == Append(memoryview(b"abc"), 9, 3)
    assert outcome_of(PartitionData(0, high_watermark=9)) == Append(memoryview(b""), 9, -1)


def test_where_the_logs_part_nothing_is_appended() -> None:
    data = PartitionData(0, high_watermark=9, diverging_epoch=EpochEndOffset(4, 7), records=b"abc")
    assert outcome_of(data) == Cut(EpochEnd(4, 7))
    # What Kafka sends where nothing parts: the default of the field.
    assert isinstance(outcome_of(PartitionData(0, diverging_epoch=EpochEndOffset())), Append)


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
def test_who_is_refused_asks_again_soon_where_somebody_is_behind_with_the_metadata(
    code: ErrorCode, seconds: float
) -> None:
    assert outcome_of(PartitionData(0, code, diverging_epoch=EpochEndOffset(4, 7))) == Wait(seconds, code)


def test_who_is_out_of_range_asks_for_the_range() -> None:
    assert outcome_of(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE)) == AskForRange()


@pytest.mark.parametrize(
    ("log_end", "outcome"),
    [(9, BeginAnew(10)), (10, None), (15, None), (20, None), (21, CutAt(20))],
)
def test_outside_of_the_range_the_copy_is_cut_or_begins_anew(log_end: int, outcome: RangeOutcome) -> None:
    assert within_range(log_end, 10, 20) == outcome
