"""Where logs part, held against logs that are looked at batch by batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.replication.epochs import UNKNOWN_END, EpochEnd, cut_at, end_of, epoch_at, parting

STARTS = [(1, 0), (4, 10), (5, 20)]
END = 30

Log = list[int]
"""The epoch of each batch."""


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(1, (1, 10)), (2, (1, 10)), (4, (4, 20)), (5, (5, 30)), (6, (-1, -1)), (-1, (-1, -1)), (0, (0, 0))],
)
def test_an_epoch_ends_where_the_next_one_begins(wanted: int, found: tuple[int, int]) -> None:
    assert end_of(STARTS, wanted, END) == found


def test_what_lies_at_an_offset_is_of_the_epoch_that_began_last() -> None:
    assert [epoch_at(STARTS, offset) for offset in (0, 9, 10, 29, -1)] == [1, 1, 4, 5, -1]


def test_who_has_what_the_leader_has_parts_nowhere() -> None:
    assert parting(STARTS, END, 20, 4) is parting(STARTS, END, 15, 4) is parting(STARTS, END, 0, -1) is None


def test_who_went_on_in_an_epoch_that_had_ended_is_told_its_end() -> None:
    assert parting(STARTS, END, 24, 4) == EpochEnd(4, 20)
    assert cut_at([(1, 0), (4, 10)], 24, EpochEnd(4, 20)) == 20


def test_who_has_an_epoch_that_the_leader_has_not_is_told_the_one_before() -> None:
    assert parting(STARTS, END, 12, 3) == EpochEnd(1, 10)
    assert cut_at([(1, 0), (3, 8)], 12, EpochEnd(1, 10)) == 8


def test_who_lacks_the_epoch_that_it_is_told_cuts_at_the_one_before_and_asks_again() -> None:
    assert cut_at([(1, 0), (3, 8)], 12, EpochEnd(2, 10)) == 8


def test_a_leader_that_is_behind_cannot_tell() -> None:
    assert parting(STARTS, END, 40, 7) == UNKNOWN_END


def starts_of(log: Log) -> list[tuple[int, int]]:
    return [(epoch, offset) for offset, epoch in enumerate(log) if not offset or log[offset - 1] != epoch]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Log, Log]:
    """Two logs with a beginning in common; each epoch was written by one leader, so what both have of it is the same."""
    common = sorted(draw(st.lists(st.integers(0, 3), max_size=6)))
    last = common[-1] if common else 0
    leader = common + sorted(draw(st.lists(st.sampled_from([last, 5, 7, 9]), max_size=5)))
    follower = common + sorted(draw(st.lists(st.sampled_from([4, 6, 8]), max_size=5)))
    return leader, follower


@given(pairs())
def test_cutting_and_asking_again_ends_where_the_logs_are_the_same(both: tuple[Log, Log]) -> None:
    leader, follower = both
    common = next((at for at, (one, other) in enumerate(zip(leader, follower, strict=False)) if one != other), None)
    least = min(len(leader), len(follower)) if common is None else common
    for _ in range(20):
        last = epoch_at(starts_of(follower), len(follower) - 1)
        parts = parting(starts_of(leader), len(leader), len(follower), last)
        if parts is None:
            break
        before = len(follower)
        follower = follower[
            : cut_at(starts_of(follower), len(follower), parts if parts != UNKNOWN_END else EpochEnd(-1, before - 1))
        ]
        assert len(follower) < before
    assert follower == leader[: len(follower)]
    assert len(follower) <= least or follower == leader[: len(follower)]
