"""One step of a member towards what it is to have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

import pytest

from ottla.coordination.groups.consumer.member import ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.consumer.reconciling import Goal, reconciled
from ottla.coordination.groups.consumer.refusal import Refused

T, U = UUID(int=1), UUID(int=2)
T0, T1, U0, U1 = (T, 0), (T, 1), (U, 0), (U, 1)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member(
    has: Mapping[TopicIdPartition, int],
    revoking: Mapping[TopicIdPartition, int] | None = None,
    state: MemberState = STABLE,
    epoch: int = 5,
) -> ConsumerMember:
    return ConsumerMember("a", epoch=epoch, state=state, assigned=dict(has), revoking=dict(revoking or {}))


def aim(
    target: Collection[TopicIdPartition],
    *,
    epoch: int = 6,
    topics: Collection[UUID] = (T, U),
    taken: Collection[TopicIdPartition] = (),
    owned: Collection[TopicIdPartition] | None = None,
    is_changed: bool = False,
) -> Goal:
    return Goal(epoch, frozenset(target), frozenset(topics), frozenset(taken), owned, is_changed)


def step(
    before: ConsumerMember, goal: Goal
) -> tuple[MemberState, int, dict[TopicIdPartition, int], dict[TopicIdPartition, int]]:
    after = reconciled(before, goal)
    return after.state, after.epoch, dict(after.assigned), dict(after.revoking)


def test_what_is_free_is_given_at_once_in_the_new_epoch_and_the_rest_keeps_the_epoch_it_came_in() -> None:
    assert step(member({T0: 3}), aim([T0, T1, U0], taken=[T0])) == (STABLE, 6, {T0: 3, T1: 6, U0: 6}, {})


def test_what_another_has_is_waited_for_in_the_new_epoch() -> None:
    assert step(member({T0: 3}), aim([T0, T1, U0], taken=[T0, T1])) == (UNRELEASED, 6, {T0: 3, U0: 6}, {})


def test_what_is_to_go_is_given_back_in_the_old_epoch_first() -> None:
    before = member({T0: 3, T1: 4})
    assert step(before, aim([T0, U0])) == (UNREVOKED, 5, {T0: 3}, {T1: 4})
    assert step(before, aim([T0, U0], owned=[T0, T1])) == (UNREVOKED, 5, {T0: 3}, {T1: 4})


def test_who_does_not_own_what_is_to_go_is_in_the_new_epoch_at_once() -> None:
    assert step(member({T0: 3, T1: 4}), aim([T0], taken=[T0, T1], owned=[T0])) == (STABLE, 6, {T0: 3}, {})


def test_what_was_being_given_back_is_given_again_where_the_target_has_turned_round() -> None:
    before = member({T0: 3}, {T1: 4}, UNREVOKED)
    assert step(before, aim([T0, T1], taken=[T0, T1], owned=[T0])) == (STABLE, 6, {T0: 3, T1: 6}, {})


def test_while_something_is_being_given_back_nothing_else_happens() -> None:
    before = member({T0: 3}, {T1: 4}, UNREVOKED)
    assert reconciled(before, aim([T0, U0], owned=[T0, T1])) is before
    assert reconciled(before, aim([T0, U0])) is before, "who says nothing has not given back"


def test_a_member_in_the_epoch_of_its_target_stays_as_it_is() -> None:
    before = member({T0: 3})
    assert reconciled(before, aim([T0, T1], epoch=5)) is before


def test_a_target_for_a_topic_that_is_not_read_does_not_count() -> None:
    assert step(member({T0: 3}), aim([T0, U0], topics=[T])) == (STABLE, 6, {T0: 3}, {})


def test_a_topic_that_is_not_read_any_more_is_given_back_before_there_is_another_target() -> None:
    goal = aim([T0, U0], epoch=5, topics=[T], is_changed=True)
    assert step(member({T0: 3, U0: 4}), goal) == (UNREVOKED, 5, {T0: 3}, {U0: 4})


def test_a_topic_that_is_not_read_any_more_is_given_back_with_what_was_to_go_before() -> None:
    goal = aim([T0, U0], topics=[T], owned=[T0, T1, U0], is_changed=True)
    assert step(member({T0: 3, U0: 4}, {T1: 2}, UNREVOKED), goal) == (UNREVOKED, 5, {T0: 3}, {T1: 2, U0: 4})


def test_a_topic_that_is_not_read_any_more_and_not_owned_is_simply_gone() -> None:
    goal = aim([T0, U0], epoch=5, topics=[T], owned=[T0], is_changed=True)
    assert step(member({T0: 3, U0: 4}), goal) == (STABLE, 5, {T0: 3}, {})


def test_a_change_that_takes_nothing_away_changes_nothing_yet() -> None:
    before = member({T0: 3})
    assert reconciled(before, aim([T0], epoch=5, topics=[T], is_changed=True)) is before


def test_every_step_remembers_the_epoch_before() -> None:
    assert reconciled(member({T0: 3}), aim([T0])).previous_epoch == 5


@pytest.mark.parametrize("owned", [None, [T0]])
def test_who_is_in_a_state_that_nobody_knows_and_may_own_something_begins_anew(
    owned: list[TopicIdPartition] | None,
) -> None:
    lost = member({T0: 3}, state=MemberState.UNKNOWN)
    with pytest.raises(Refused):
        reconciled(lost, aim([T0], owned=owned))
    assert step(lost, aim([T0], owned=[])) == (STABLE, 6, {T0: 3}, {})
