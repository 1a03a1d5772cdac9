"""The divergence of logs, compared with a search batch by batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.replication.epochs import (
    UNKNOWN_END,
    EpochEnd,
    end_of,
    epoch_at,
    find_divergence,
    truncation_offset,
)

STARTS = [(1, 0), (4, 10), (5, 20)]
END = 30

Log = list[int]
"""The epoch of each batch."""


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(1, (1, 10)), (2, (1, 10)), (4, (4, 20)), (5, (5, 30)), (6, (-1, -1)), (-1, (-1, -1)), (0, (0, 0))],
)
def test_an_epoch_ends_at_the_start_of_the_next(wanted: int, found: tuple[int, int]) -> None:
    assert end_of(STARTS, wanted, END) == found


def test_an_offset_belongs_to_the_last_epoch_started_before_it() -> None:
    assert [epoch_at(STARTS, offset) for offset in (0, 9, 10, 29, -1)] == [1, 1, 4, 5, -1]


def test_identical_logs_do_not_diverge() -> None:
    assert (
        find_divergence(STARTS, END, 20, 4)
        is find_divergence(STARTS, END, 15, 4)
        is find_divergence(STARTS, END, 0, -1)
        is None
    )


def test_a_follower_that_continued_an_ended_epoch_gets_its_end() -> None:
    assert find_divergence(STARTS, END, 24, 4) == EpochEnd(4, 20)
    assert truncation_offset([(1, 0), (4, 10)], 24, EpochEnd(4, 20)) == 20


def test_a_follower_with_an_unknown_epoch_gets_the_previous_one() -> None:
    assert find_divergence(STARTS, END, 12, 3) == EpochEnd(1, 10)
    assert truncation_offset([(1, 0), (3, 8)], 12, EpochEnd(1, 10)) == 8


def test_a_follower_without_the_returned_epoch_truncates_at_its_previous_one_and_retries() -> None:
    assert truncation_offset([(1, 0), (3, 8)], 12, EpochEnd(2, 10)) == 8


def test_a_leader_that_is_behind_finds_no_divergence() -> None:
    assert find_divergence(STARTS, END, 40, 7) == UNKNOWN_END


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
def test_repeated_truncation_ends_at_the_common_prefix(both: tuple[Log, Log]) -> None:
    leader, follower = both
    common = next((at for at, (one, other) in enumerate(zip(leader, follower, strict=False)) if one != other), None)
    least = min(len(leader), len(follower)) if common is None else common
    for _ in range(20):
        last = epoch_at(starts_of(follower), len(follower) - 1)
        parts = find_divergence(starts_of(leader), len(leader), len(follower), last)
        if parts is None:
            break
        before = len(follower)
        follower = follower[
            : truncation_offset(
                starts_of(follower), len(follower), parts if parts != UNKNOWN_END else EpochEnd(-1, before - 1)
            )
        ]
        assert len(follower) < before
    assert follower == leader[: len(follower)]
    assert len(follower) <= least or follower == leader[: len(follower)]
