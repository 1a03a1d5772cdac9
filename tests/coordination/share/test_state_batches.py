"""Merging the persisted ranges of a share group."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.share.state_batches import PersisterStateBatch, combine_state_batches


def state_batches(most: int = 6) -> st.SearchStrategy[list[PersisterStateBatch]]:
    each = st.builds(
        lambda first, size, state, count: PersisterStateBatch(first, first + size, state, count),
        st.integers(0, 20),
        st.integers(0, 8),
        st.sampled_from([0, 2, 3, 4]),
        st.integers(0, 3),
    )
    return st.lists(each, max_size=most)


def states_of(batches: list[PersisterStateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    """The highest delivery count and state of each offset, one by one."""
    states: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            states[offset] = max(states.get(offset, (-1, -1)), (batch.delivery_count, batch.state))
    return states


@given(state_batches(), state_batches(), st.integers(-1, 20))
def test_each_offset_has_the_highest_count_and_state_of_all_batches(
    current: list[PersisterStateBatch], changes: list[PersisterStateBatch], start_offset: int
) -> None:
    combined = combine_state_batches(current, changes, start_offset)

    assert states_of(list(combined), -1) == states_of([*current, *changes], start_offset)


@given(state_batches(), st.integers(-1, 20))
def test_combined_batches_are_sorted_apart_and_as_few_as_possible(
    batches: list[PersisterStateBatch], start_offset: int
) -> None:
    combined = combine_state_batches((), batches, start_offset)

    for before, after in itertools.pairwise(combined):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


@given(state_batches(), state_batches())
def test_a_change_that_is_repeated_has_no_effect(
    current: list[PersisterStateBatch], changes: list[PersisterStateBatch]
) -> None:
    once = combine_state_batches(current, changes)

    assert combine_state_batches(once, changes) == once
