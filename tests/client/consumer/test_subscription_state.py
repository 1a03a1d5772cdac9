from __future__ import annotations

import re
from types import SimpleNamespace
from uuid import UUID

import pytest

from ottla.client.consumer.subscription_state import SubscriptionState, SubscriptionType
from ottla.client.metadata.cluster import Cluster, TopicInfo
from ottla.errors import IllegalStateError
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, TopicPartition

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


def test_partitions_come_in_one_way_at_a_time() -> None:
    state = SubscriptionState(LATEST)
    state.subscribe(["t"])
    state.subscribe(["u"])
    assert state.topics == {"u"}
    assert state.by_group
    for another in (SubscriptionType.PATTERN, SubscriptionType.BROKER_PATTERN, SubscriptionType.PARTITIONS):
        with pytest.raises(IllegalStateError, match=r"by subscribe\(\) with topics: call unsubscribe\(\) before"):
            state.become(another)
    state.unsubscribe()
    state.subscribe_broker_pattern("t.*")
    assert (state.type, state.broker_pattern, state.by_group) == (SubscriptionType.BROKER_PATTERN, "t.*", True)


def cluster(**topics: TopicInfo) -> Cluster:
    return Cluster(topics=topics)


def info(topic_id: int = 0, *, internal: bool = False) -> TopicInfo:
    return TopicInfo("t", UUID(int=topic_id), internal, ())


@pytest.mark.behaviour("C19")
def test_a_pattern_takes_what_it_matches_whole_and_internal_topics_where_they_are_wanted() -> None:
    state = SubscriptionState(LATEST)
    state.match(cluster(t=info()), exclude_internal=True)
    assert state.topics == frozenset()
    state.subscribe_pattern(re.compile("t."))
    there = cluster(t1=info(), t2=info(internal=True), t10=info(), u1=info())
    state.match(there, exclude_internal=True)
    assert state.topics == {"t1"}
    state.match(there, exclude_internal=False)
    assert state.topics == {"t1", "t2"}


def test_where_a_seek_says_where_to_read_no_committed_offset_is_waited_for() -> None:
    state = SubscriptionState(LATEST, in_group=True)
    state.assign([A, B])
    assert state.awaiting_committed(0) == [A, B]
    state.seek(A, 3)
    state.request_reset(B, EARLIEST)
    assert state.awaiting_committed(0) == []
    state.start_at(A, OffsetAndMetadata(9))
    assert state.state(A).position == 3


def test_a_committed_offset_that_was_looked_up_is_where_reading_begins_or_else_the_policy_says() -> None:
    state = SubscriptionState(LATEST, in_group=True)
    state.assign([A, B])
    state.start_at(A, OffsetAndMetadata(9, "", 4))
    state.start_at(B, None)
    state.start_at(C, OffsetAndMetadata(1))
    assert (state.state(A).position, state.state(A).epoch, state.state(A).reset_to) == (9, 4, None)
    assert (state.state(B).position, state.state(B).reset_to) == (None, LATEST)
    assert state.awaiting_committed(0) == []


def test_what_has_a_position_is_consumed_up_to_there() -> None:
    state = assigned(A, B)
    state.seek(A, 5, 2)
    assert state.consumed() == {A: OffsetAndMetadata(5, "", 2)}
    assert (state.next_offset(A), state.next_offset(B)) == (5, None)


def test_what_a_loop_has_not_had_is_not_consumed_and_is_read_again() -> None:
    state = assigned(A, B)
    state.seek(A, 5)
    waiting = {A: OffsetAndMetadata(3, "", 1), B: OffsetAndMetadata(0), C: OffsetAndMetadata(0)}
    state.loop = SimpleNamespace(next_offsets=lambda: waiting, discard=lambda: None)  # type: ignore[assignment]
    assert state.consumed() == {A: OffsetAndMetadata(3, "", 1)}
    assert state.next_offset(A) == 3
    state.take_back()
    assert (state.state(A).position, state.state(A).epoch, state.state(B).position) == (3, 1, None)


def test_where_a_topic_is_another_one_now_the_policy_says_where_to_begin() -> None:
    state = assigned(A, B)
    for tp in (A, B):
        state.seek(tp, 7)
        state.state(tp).readable_to = 9
    assert state.notice_new_topics(cluster(t=info(1))) == [], "its first id"
    assert state.notice_new_topics(cluster(t=info(1))) == []
    assert state.notice_new_topics(cluster()) == []
    state.request_reset(B, EARLIEST)
    assert state.notice_new_topics(cluster(t=info(2))) == [A], "the other has no position to lose"
    assert (state.state(A).position, state.state(A).reset_to, state.state(A).has_more()) == (None, LATEST, False)
    assert state.state(B).reset_to == EARLIEST


def test_what_is_held_back_is_not_asked_for() -> None:
    state = assigned(A, B)
    for tp in (A, B):
        state.seek(tp, 0)
    state.hold_back([A])
    assert state.fetchable(0, ()) == [B]


def test_a_reset_that_failed_is_tried_again_in_its_time() -> None:
    state = assigned(A)
    state.postpone([A], until=3)
    assert state.needing_reset(2.9) == {}
    assert state.needing_reset(3) == {A: LATEST}
