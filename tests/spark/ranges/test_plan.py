"""Planning: rate limits, splitting, and what counts as lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.model import TopicPartition
from ottla.spark.ranges.offsets import SplitLimits
from ottla.spark.ranges.plan import OffsetRange, describe_losses, ranges, rate_limited, should_hold_back, split

A0, A1, A2 = (TopicPartition("a", p) for p in range(3))
sizes = st.dictionaries(st.sampled_from([A0, A1, A2]), st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)))


def test_a_limit_is_shared_out_by_what_each_partition_has_to_offer() -> None:
    assert rate_limited({A0: 0, A1: 100}, {A0: 300, A1: 200}, 100) == {A0: 75, A1: 125}


def test_a_partition_with_little_to_offer_still_moves() -> None:
    assert rate_limited({A0: 0, A1: 0}, {A0: 10_000, A1: 1}, 10) == {A0: 9, A1: 1}


def test_a_limit_above_the_available_records_changes_nothing() -> None:
    assert rate_limited({A0: 0}, {A0: 5}, 5) == {A0: 5}


@given(sizes, st.integers(1, 10**6))
def test_a_limited_end_lies_between_begin_and_end(parts: dict[TopicPartition, tuple[int, int]], limit: int) -> None:
    begin = {tp: start for tp, (start, _) in parts.items()}
    end = {tp: start + size for tp, (start, size) in parts.items()}
    limited = rate_limited(begin, end, limit)
    assert all(begin[tp] <= limited[tp] <= end[tp] for tp in end)
    assert sum(limited[tp] - begin[tp] for tp in end) <= limit + len(end)
    assert (limited != begin) == (end != begin)


def test_a_batch_waits_for_enough_but_not_for_ever() -> None:
    begin, end = {A0: 0}, {A0: 5, A1: 2}
    assert should_hold_back(begin, end, 8, waited_ms=0, most_ms=1000)
    assert not should_hold_back(begin, end, 7, waited_ms=0, most_ms=1000)
    assert not should_hold_back(begin, end, 8, waited_ms=1000, most_ms=1000)


def test_partitions_without_news_get_no_task() -> None:
    assert ranges({A0: 3, A1: 5}, {A0: 3, A1: 9}) == [OffsetRange(A1, 5, 9)]


def test_the_least_number_of_tasks_is_met_by_splitting_the_large_ones() -> None:
    parts = [OffsetRange(A0, 0, 900), OffsetRange(A1, 0, 100)]
    assert split(parts, SplitLimits(min_partitions=4)) == [
        *(OffsetRange(A0, at, at + 225) for at in (0, 225, 450, 675)),
        OffsetRange(A1, 0, 100),
    ]
    assert split(parts, SplitLimits(min_partitions=2)) == parts


def test_no_task_gets_more_than_the_most() -> None:
    assert split([OffsetRange(A0, 5, 15)], SplitLimits(max_records_per_partition=4)) == [
        OffsetRange(A0, 5, 8),
        OffsetRange(A0, 8, 11),
        OffsetRange(A0, 11, 15),
    ]


@given(sizes, st.integers(1, 40) | st.none(), st.integers(10**6, 10**9) | st.none())
def test_splitting_loses_nothing_and_reads_nothing_twice(
    parts: dict[TopicPartition, tuple[int, int]], least: int | None, most: int | None
) -> None:
    whole = [OffsetRange(tp, start, start + size) for tp, (start, size) in sorted(parts.items()) if size]
    pieces = split(whole, SplitLimits(least, most))
    assert all(piece.size > 0 for piece in pieces)
    for part in whole:
        mine = [piece for piece in pieces if piece.tp == part.tp]
        assert [p.start for p in mine] + [part.end] == [part.start] + [p.end for p in mine]
    if most is not None:
        assert all(piece.size <= most for piece in pieces)


def test_losses_name_partitions_and_offsets() -> None:
    assert describe_losses({A0: 7, A1: 9}, {A1: 4, A2: 8}, {A2: 3}) == [
        "partition a-0 does not exist any more, and the query had read it up to offset 7",
        "partition a-1 ends at offset 4, before offset 9, which is next",
        "new partition a-2 starts at offset 3: earlier records do not exist any more",
    ]
