"""Decisions of the quorum from the shape of a log: the longer log, the divergence, and the need for a snapshot."""

from __future__ import annotations

import pytest

from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.replication.epochs import EpochEnd

WHOLE = LogShape(0, 30, ((1, 0), (4, 10), (5, 20)))
SHORT = LogShape(10, 30, ((4, 12), (5, 20)), snapshot=SnapshotId(10, 3), start_epoch=3)
"""The records before the start are only in a snapshot."""
EMPTY = LogShape(10, 10, (), snapshot=SnapshotId(10, 3), start_epoch=3)


def test_the_epoch_of_a_log_is_that_of_its_last_record_or_snapshot() -> None:
    assert [shape.epoch for shape in (WHOLE, SHORT, EMPTY, LogShape())] == [5, 5, 3, 0]
    assert WHOLE.position == (5, 30)


@pytest.mark.parametrize(
    ("shape", "epoch", "end"),
    [
        (WHOLE, 5, (5, 30)),
        (WHOLE, 3, (1, 10)),
        (WHOLE, 9, (5, 30)),
        (WHOLE, 0, (0, 0)),
        (SHORT, 4, (4, 20)),
        (SHORT, 3, (3, 10)),
        (SHORT, 2, (3, 10)),
        (EMPTY, 9, (3, 10)),
    ],
)
def test_an_epoch_ends_where_the_next_begins_and_those_of_a_snapshot_at_its_end(
    shape: LogShape, epoch: int, end: tuple[int, int]
) -> None:
    assert shape.end_of_epoch(epoch) == EpochEnd(*end)


@pytest.mark.parametrize(
    ("shape", "offset", "epoch", "needs"),
    [
        (WHOLE, 0, 0, False),
        (WHOLE, 5, 1, False),
        (SHORT, 0, 0, True),
        (SHORT, 9, 3, True),
        (SHORT, 10, 2, True),
        (SHORT, 10, 3, False),
        (SHORT._replace(start=0, start_epoch=0), 9, 0, False),
        (SHORT._replace(start=0, start_epoch=0), 0, 0, True),
    ],
)
def test_a_snapshot_is_sent_to_a_follower_behind_the_log_start(
    shape: LogShape, offset: int, epoch: int, needs: bool
) -> None:
    assert shape.needs_snapshot(offset, epoch) is needs


@pytest.mark.parametrize(
    ("offset", "epoch", "parting"),
    [(0, 9, None), (20, 4, None), (15, 4, None), (21, 4, (4, 20)), (15, 3, (1, 10)), (30, 5, None), (31, 5, (5, 30))],
)
def test_a_foreign_log_diverges_at_the_local_end_of_its_epoch(
    offset: int, epoch: int, parting: tuple[int, int] | None
) -> None:
    assert WHOLE.divergence(offset, epoch) == parting


def test_a_log_is_never_truncated_below_its_snapshot() -> None:
    assert WHOLE.truncation_offset(EpochEnd(4, 15)) == 15
    assert SHORT.truncation_offset(EpochEnd(4, 15)) == 15
    assert SHORT.truncation_offset(EpochEnd(2, 5)) == 10
