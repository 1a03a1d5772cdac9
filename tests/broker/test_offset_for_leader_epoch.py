"""OffsetForLeaderEpoch: where each leader's time ended."""

from __future__ import annotations

import pytest

from ottla.coordination.replication.epochs import UNKNOWN_END as UNKNOWN
from ottla.coordination.replication.epochs import end_of
from ottla.errors import ErrorCode
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.wire import Wire


def find_epoch_end(wire: Wire, partition: int, epoch: int, current: int = -1, version: int = 4) -> EpochEndOffset:
    wanted = OffsetForLeaderTopic("t", [OffsetForLeaderPartition(partition, current, epoch)])
    response = wire.ask(OffsetForLeaderEpochRequest(-1, [wanted]), version)
    found: EpochEndOffset = response.topics[0].partitions[0]
    return found


@pytest.mark.parametrize("version", range(2, 5))
def test_the_current_epoch_ends_with_the_log(wire: Wire, version: int) -> None:
    wire.create("t")
    assert find_epoch_end(wire, 0, 0, 0, version) == EpochEndOffset(0, 0, 0, 0)
    wire.produce("t", b"a", b"b")
    assert find_epoch_end(wire, 0, 0, 0, version) == EpochEndOffset(0, 0, 0, 2)


def test_a_later_epoch_and_an_unknown_partition_have_no_end(wire: Wire) -> None:
    wire.create("t")
    assert find_epoch_end(wire, 0, 1) == EpochEndOffset(0, 0, -1, -1)
    assert find_epoch_end(wire, 0, -1) == EpochEndOffset(0, 0, -1, -1)
    assert find_epoch_end(wire, 0, 0, current=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert find_epoch_end(wire, 1, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(1, (1, 5)), (2, (2, 10)), (3, (2, 10)), (4, (4, 30)), (7, (7, 40)), (0, (0, 0)), (8, UNKNOWN), (-1, UNKNOWN)],
)
def test_an_epoch_ends_where_the_next_one_starts(wanted: int, found: tuple[int, int]) -> None:
    assert end_of([(1, 0), (2, 5), (4, 10), (7, 30)], wanted, log_end=40) == found
