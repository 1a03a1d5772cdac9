"""Acknowledgement batches: whatever is acknowledged comes back from the batches, and the batches are small."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.share.state.acknowledgements import (
    GAP,
    LONG_RUN,
    AcknowledgeType,
    UniformTypes,
    build_batches,
    merge_batches,
)
from ottla.protocol.messages.share_fetch import AcknowledgementBatch

KINDS = st.sampled_from([GAP, *AcknowledgeType])
ACKNOWLEDGED = st.one_of(
    st.dictionaries(st.integers(0, 60), KINDS),
    st.lists(st.tuples(st.integers(1, 30), KINDS), max_size=6).map(
        lambda runs: dict(enumerate(kind for length, kind in runs for _ in range(length)))
    ),
)


def expand(batch: AcknowledgementBatch) -> dict[int, int]:
    """Return the type of each offset, as a broker reads the batch."""
    offsets = range(batch.first_offset, batch.last_offset + 1)
    kinds = batch.acknowledge_types
    return dict(zip(offsets, kinds if len(kinds) > 1 else list(kinds) * len(offsets), strict=True))


def plain(*batches: AcknowledgementBatch) -> list[tuple[int, int, list[int]]]:
    return [(batch.first_offset, batch.last_offset, list(batch.acknowledge_types)) for batch in batches]


@given(ACKNOWLEDGED)
def test_a_broker_reads_from_the_batches_what_was_acknowledged(types: dict[int, int]) -> None:
    batches = build_batches(types)

    read = [item for batch in batches for item in expand(batch).items()]
    assert read == sorted(types.items())


@given(ACKNOWLEDGED)
def test_batches_are_in_order_and_touch_only_where_the_types_differ(types: dict[int, int]) -> None:
    batches = build_batches(types)

    for before, after in pairwise(batches):
        assert before.last_offset < after.first_offset
        if before.last_offset + 1 == after.first_offset:  # split so that a long run has one type
            assert max(len(expand(before)), len(expand(after))) >= LONG_RUN
            assert 1 in (len(before.acknowledge_types), len(after.acknowledge_types))


def test_consecutive_offsets_of_one_type_are_one_batch_with_one_type() -> None:
    assert plain(*build_batches({3: 1, 4: 1, 5: 1})) == [(3, 5, [1])]


def test_short_runs_of_several_types_share_a_batch() -> None:
    assert plain(*build_batches({3: 1, 4: 2, 5: 2})) == [(3, 5, [1, 2, 2])]


def test_a_missing_offset_ends_a_batch() -> None:
    assert plain(*build_batches({3: 1, 5: 1})) == [(3, 3, [1]), (5, 5, [1])]


def test_a_long_run_has_a_batch_of_its_own() -> None:
    types = {0: 2, **dict.fromkeys(range(1, 1 + LONG_RUN), 1), 1 + LONG_RUN: 3}

    assert plain(*build_batches(types)) == [(0, 0, [2]), (1, LONG_RUN, [1]), (1 + LONG_RUN, 1 + LONG_RUN, [3])]


def test_nothing_acknowledged_is_no_batch() -> None:
    assert build_batches({}) == []


def test_ranges_of_one_type_are_joined_without_looking_at_each_offset() -> None:
    parts = [UniformTypes([range(20, 30), range(5)], 1), UniformTypes([range(5, 10)], 1)]

    assert plain(*merge_batches(parts)) == [(0, 9, [1]), (20, 29, [1])]
    assert [(offset, parts[0][offset]) for offset in (0, 29)] == [(0, 1), (29, 1)]
    assert len(parts[0]) == 15
    assert list(parts[1]) == [5, 6, 7, 8, 9]
    with pytest.raises(KeyError):
        parts[0][5]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([UniformTypes([range(3)], 1), UniformTypes([range(3, 5)], 2)], [(0, 4, [1, 1, 1, 2, 2])]),
        ([UniformTypes([range(3)], 1), {1: 2}], [(0, 2, [1, 2, 1])]),
        ([UniformTypes([range(3)], 1), UniformTypes([range(2, 5)], 1)], [(0, 4, [1])]),
        ([{0: 1}, {0: 2, 1: 2}], [(0, 1, [2])]),
    ],
)
def test_different_types_and_repeated_offsets_are_merged_by_offset(
    parts: list[Mapping[int, int]], expected: list[tuple[int, int, list[int]]]
) -> None:
    assert plain(*merge_batches(parts)) == expected
