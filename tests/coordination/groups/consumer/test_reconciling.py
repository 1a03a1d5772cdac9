"""One step of a member towards what it is to have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

import pytest

from ottla.coordination.groups.consumer.member import ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.consumer.reconciling import ReconciliationGoal, advance_to_goal
from ottla.coordination.groups.consumer.refusal import RequestRejected

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
) -> ReconciliationGoal:
    return ReconciliationGoal(epoch, frozenset(target), frozenset(topics), frozenset(taken), owned, is_changed)


def step(
    before: ConsumerMember, goal: ReconciliationGoal
) -> tuple[MemberState, int, dict[TopicIdPartition, int], dict[TopicIdPartition, int]]:
    after = advance_to_goal(before, goal)
    return after.state, after.epoch, dict(after.assigned), dict(after.revoking)


def test_free_partitions_are_assigned_in_the_new_epoch_and_the_rest_keep_their_epoch() -> None:
    assert step(member({T0: 3}), aim([T0, T1, U0], taken=[T0])) == (STABLE, 6, {T0: 3, T1: 6, U0: 6}, {})


def test_partitions_of_another_owner_are_awaited_in_the_new_epoch() -> None:
    assert step(member({T0: 3}), aim([T0, T1, U0], taken=[T0, T1])) == (UNRELEASED, 6, {T0: 3, U0: 6}, {})


def test_partitions_are_revoked_in_the_old_epoch_first() -> None:
    before = member({T0: 3, T1: 4})
    assert step(before, aim([T0, U0])) == (UNREVOKED, 5, {T0: 3}, {T1: 4})
    assert step(before, aim([T0, U0], owned=[T0, T1])) == (UNREVOKED, 5, {T0: 3}, {T1: 4})


def test_a_member_with_nothing_to_revoke_enters_the_new_epoch_at_once() -> None:
    assert step(member({T0: 3, T1: 4}), aim([T0], taken=[T0, T1], owned=[T0])) == (STABLE, 6, {T0: 3}, {})


def test_partitions_in_revocation_are_assigned_again_if_the_target_returns_them() -> None:
    before = member({T0: 3}, {T1: 4}, UNREVOKED)
    assert step(before, aim([T0, T1], taken=[T0, T1], owned=[T0])) == (STABLE, 6, {T0: 3, T1: 6}, {})


def test_a_pending_revocation_blocks_other_changes() -> None:
    before = member({T0: 3}, {T1: 4}, UNREVOKED)
    assert advance_to_goal(before, aim([T0, U0], owned=[T0, T1])) is before
    assert advance_to_goal(before, aim([T0, U0])) is before, "who says nothing has not given back"


def test_a_member_in_the_epoch_of_its_target_stays_as_it_is() -> None:
    before = member({T0: 3})
    assert advance_to_goal(before, aim([T0, T1], epoch=5)) is before


def test_a_target_for_a_topic_that_is_not_read_does_not_count() -> None:
    assert step(member({T0: 3}), aim([T0, U0], topics=[T])) == (STABLE, 6, {T0: 3}, {})


def test_an_unsubscribed_topic_is_revoked_before_there_is_a_new_target() -> None:
    goal = aim([T0, U0], epoch=5, topics=[T], is_changed=True)
    assert step(member({T0: 3, U0: 4}), goal) == (UNREVOKED, 5, {T0: 3}, {U0: 4})


def test_an_unsubscribed_topic_is_revoked_with_earlier_pending_partitions() -> None:
    goal = aim([T0, U0], topics=[T], owned=[T0, T1, U0], is_changed=True)
    assert step(member({T0: 3, U0: 4}, {T1: 2}, UNREVOKED), goal) == (UNREVOKED, 5, {T0: 3}, {T1: 2, U0: 4})


def test_an_unsubscribed_topic_that_is_not_owned_is_dropped() -> None:
    goal = aim([T0, U0], epoch=5, topics=[T], owned=[T0], is_changed=True)
    assert step(member({T0: 3, U0: 4}), goal) == (STABLE, 5, {T0: 3}, {})


def test_a_change_without_a_revocation_has_no_immediate_effect() -> None:
    before = member({T0: 3})
    assert advance_to_goal(before, aim([T0], epoch=5, topics=[T], is_changed=True)) is before


def test_every_step_remembers_the_epoch_before() -> None:
    assert advance_to_goal(member({T0: 3}), aim([T0])).previous_epoch == 5


@pytest.mark.parametrize("owned", [None, [T0]])
def test_a_member_in_an_unknown_state_with_partitions_is_fenced(
    owned: list[TopicIdPartition] | None,
) -> None:
    lost = member({T0: 3}, state=MemberState.UNKNOWN)
    with pytest.raises(RequestRejected):
        advance_to_goal(lost, aim([T0], owned=owned))
    assert step(lost, aim([T0], owned=[])) == (STABLE, 6, {T0: 3}, {})
