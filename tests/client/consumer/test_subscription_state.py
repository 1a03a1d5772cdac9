from __future__ import annotations

import pytest

from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.errors import IllegalStateError
from ottla.model import EARLIEST, LATEST, TopicPartition

A, B, C = (TopicPartition("t", index) for index in range(3))


def assigned(*tps: TopicPartition, reset: int | None = LATEST) -> SubscriptionState:
    state = SubscriptionState(reset)
    state.assign(tps)
    return state


def test_a_new_partition_needs_its_position_looked_up() -> None:
    state = assigned(A, B)
    assert state.needing_reset(0) == {A: LATEST, B: LATEST}
    assert state.fetchable(0, ()) == []


def test_without_a_policy_a_new_partition_is_lost_until_it_is_sought() -> None:
    state = assigned(A, reset=None)
    assert state.lost() == [A]
    state.seek(A, 5)
    assert state.lost() == []
    assert state.fetchable(0, ()) == [A]


@pytest.mark.behaviour("C19")
def test_a_position_that_was_looked_up_counts_unless_something_else_was_asked_for_meanwhile() -> None:
    state = assigned(A)
    state.request_reset(A, EARLIEST)
    state.reset(A, LATEST, 100)
    assert state.state(A).position is None
    state.reset(A, EARLIEST, 0)
    assert state.state(A).position == 0
    state.seek(A, 7)
    state.reset(A, EARLIEST, 0)
    assert state.state(A).position == 7


@pytest.mark.behaviour("C19")
def test_assigning_anew_keeps_the_positions_of_those_that_stay() -> None:
    state = assigned(A, B)
    state.seek(A, 5)
    state.seek(B, 6)
    state.assign([B, C])
    assert list(state.assigned()) == [B, C]
    assert state.state(B).position == 6
    assert state.state(C).position is None


def test_what_is_not_assigned_cannot_be_sought() -> None:
    with pytest.raises(IllegalStateError, match="t-1 is not assigned to this consumer; call assign"):
        assigned(A).seek(B, 0)


@pytest.mark.behaviour("C2")
def test_only_partitions_without_buffered_data_are_asked_for() -> None:
    state = assigned(A, B)
    state.seek(A, 0)
    state.seek(B, 0)
    assert state.fetchable(0, {A}) == [B]


@pytest.mark.behaviour("C19")
def test_a_paused_partition_is_not_asked_for() -> None:
    state = assigned(A)
    state.seek(A, 0)
    state.state(A).paused = True
    assert state.fetchable(0, ()) == []


def test_a_partition_at_its_bound_is_not_asked_for() -> None:
    state = assigned(A)
    state.seek(A, 4)
    state.state(A).end = 5
    assert state.fetchable(0, ()) == [A]
    state.seek(A, 5)
    assert state.fetchable(0, ()) == []


def test_a_partition_in_trouble_is_left_alone_for_a_moment() -> None:
    state = assigned(A, B)
    state.seek(A, 0)
    state.seek(B, 0)
    state.postpone([A], until=3)
    assert state.fetchable(1, ()) == [B]
    assert state.next_retry(1) == 2
    assert state.fetchable(3, ()) == [A, B]


def test_the_next_to_be_tried_again_is_the_one_whose_moment_comes_first() -> None:
    state = assigned(A, B, C)
    assert state.next_retry(0) == float("inf")
    state.postpone([A], until=7)
    state.postpone([B], until=4)
    state.postpone([TopicPartition("gone", 0)], until=1)
    assert state.next_retry(1) == 3
    assert state.next_retry(4) == 3, "what is due is not waited for"
    assert state.next_retry(7) == float("inf")


def test_who_had_a_turn_goes_to_the_back() -> None:
    state = assigned(A, B, C)
    for tp in (A, B, C):
        state.seek(tp, 0)
    state.move_to_end(A)
    assert state.fetchable(0, ()) == [B, C, A]
