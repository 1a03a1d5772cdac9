"""The ranges that remain after filters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
)

from ottla.model import TopicPartition
from ottla.spark.ranges.plan import OffsetRange
from ottla.spark.ranges.pushdown import PushedFilter, push

OFFSET = ("offset",)
T0 = TopicPartition("t", 0)
COMPARISONS: dict[Any, Callable[[int, int], bool]] = {
    EqualTo: lambda offset, bound: offset == bound,
    GreaterThan: lambda offset, bound: offset > bound,
    GreaterThanOrEqual: lambda offset, bound: offset >= bound,
    LessThan: lambda offset, bound: offset < bound,
    LessThanOrEqual: lambda offset, bound: offset <= bound,
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(COMPARISONS, key=str)), st.integers(-2, 12)), max_size=4),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_offsets_that_are_left_are_those_that_the_predicates_leave(
    given_: list[tuple[Any, int]], start: int, size: int
) -> None:
    wanted, left = push([kind(OFFSET, bound) for kind, bound in given_])
    part = wanted.within(OffsetRange(T0, start, start + size), {})
    expected = [
        offset
        for offset in range(start, start + size)
        if all(COMPARISONS[kind](offset, bound) for kind, bound in given_)
    ]
    assert list(range(part.start, part.end)) == expected
    assert not left


def test_partitions_and_topics_are_named() -> None:
    wanted, left = push([In(("partition",), (1, 2)), EqualTo(("partition",), 2), EqualTo(("topic",), "t")])
    assert [tp for tp in (T0, TopicPartition("t", 2), TopicPartition("u", 2)) if wanted.has(tp)] == [("t", 2)]
    assert not left


@pytest.mark.parametrize(("micros", "ms"), [(0, 5000), (1, 5001), (1000, 5001), (999_999, 6000)])
def test_a_timestamp_predicate_sets_the_start_offset_and_is_evaluated_again(micros: int, ms: int) -> None:
    filters: list[Filter] = [
        GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(5, UTC).replace(microsecond=micros))
    ]
    wanted, left = push(filters)
    assert wanted == PushedFilter(since_ms=ms)
    assert left == filters
    assert wanted.within(OffsetRange(T0, 0, 9), {T0: 4}) == OffsetRange(T0, 4, 9)
    assert wanted.within(OffsetRange(T0, 0, 9), {T0: 12}).size == 0


def test_other_predicates_are_spark_s() -> None:
    theirs: list[Filter] = [
        EqualTo(("value", "partition"), 1),
        EqualTo(("key",), b""),
        StringContains(("topic",), "x"),
        LessThan(("timestamp",), datetime.now(UTC)),
        IsNotNull(("value",)),
    ]
    assert push([*theirs, IsNotNull(OFFSET)]) == (PushedFilter(), theirs)
