from __future__ import annotations

import re
from types import SimpleNamespace
from uuid import UUID

import pytest

from ottla.client.consumer.subscription_state import SubscriptionState, SubscriptionType
from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.errors import IllegalStateError
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, TopicPartition

A, B, C = (TopicPartition("t", index) for index in range(3))


def assigned(*tps: TopicPartition, reset: int | None = LATEST) -> SubscriptionState:
    state = SubscriptionState(reset)
    state.assign(tps)
    return state


def test_a_new_partition_needs_its_position_looked_up() -> None:
    state = assigned(A, B)
    assert state.find_reset_timestamps(0) == {A: LATEST, B: LATEST}
    assert state.find_fetchable(0, ()) == []


def test_without_a_policy_a_new_partition_has_no_position_until_a_seek() -> None:
    state = assigned(A, reset=None)
    assert state.find_lost() == [A]
    state.seek(A, 5)
    assert state.find_lost() == []
    assert state.find_fetchable(0, ()) == [A]


@pytest.mark.behaviour("C19")
def test_a_looked_up_position_is_ignored_after_a_seek_or_reset() -> None:
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
def test_a_new_assignment_keeps_the_positions_of_retained_partitions() -> None:
    state = assigned(A, B)
    state.seek(A, 5)
    state.seek(B, 6)
    state.assign([B, C])
    assert list(state.assigned()) == [B, C]
    assert state.state(B).position == 6
    assert state.state(C).position is None


def test_unassigned_partitions_cannot_be_sought() -> None:
    with pytest.raises(IllegalStateError, match="t-1 is not assigned to this consumer; call assign"):
        assigned(A).seek(B, 0)


@pytest.mark.behaviour("C2")
def test_only_partitions_without_buffered_data_are_fetched() -> None:
    state = assigned(A, B)
    state.seek(A, 0)
    state.seek(B, 0)
    assert state.find_fetchable(0, {A}) == [B]


@pytest.mark.behaviour("C19")
def test_a_paused_partition_is_not_fetched() -> None:
    state = assigned(A)
    state.seek(A, 0)
    state.state(A).is_paused = True
    assert state.find_fetchable(0, ()) == []


def test_a_partition_at_its_end_bound_is_not_fetched() -> None:
    state = assigned(A)
    state.seek(A, 4)
    state.state(A).end = 5
    assert state.find_fetchable(0, ()) == [A]
    state.seek(A, 5)
    assert state.find_fetchable(0, ()) == []


def test_a_failed_partition_is_not_fetched_during_its_backoff() -> None:
    state = assigned(A, B)
    state.seek(A, 0)
    state.seek(B, 0)
    state.postpone_requests([A], until=3)
    assert state.find_fetchable(1, ()) == [B]
    assert state.next_retry(1) == 2
    assert state.find_fetchable(3, ()) == [A, B]


def test_the_next_retry_is_the_earliest_due_partition() -> None:
    state = assigned(A, B, C)
    assert state.next_retry(0) == float("inf")
    state.postpone_requests([A], until=7)
    state.postpone_requests([B], until=4)
    state.postpone_requests([TopicPartition("gone", 0)], until=1)
    assert state.next_retry(1) == 3
    assert state.next_retry(4) == 3, "what is due is not waited for"
    assert state.next_retry(7) == float("inf")


def test_a_partition_that_was_read_moves_to_the_back() -> None:
    state = assigned(A, B, C)
    for tp in (A, B, C):
        state.seek(tp, 0)
    state.move_to_end(A)
    assert state.find_fetchable(0, ()) == [B, C, A]


def test_only_one_kind_of_subscription_is_allowed_at_a_time() -> None:
    state = SubscriptionState(LATEST)
    state.subscribe(["t"])
    state.subscribe(["u"])
    assert state.topics == {"u"}
    assert state.is_group_managed
    for another in (SubscriptionType.PATTERN, SubscriptionType.BROKER_PATTERN, SubscriptionType.PARTITIONS):
        with pytest.raises(IllegalStateError, match=r"uses subscribe\(\) with topics: call unsubscribe\(\) before"):
            state.set_type(another)
    state.unsubscribe()
    state.subscribe_broker_pattern("t.*")
    assert (state.type, state.broker_pattern, state.is_group_managed) == (SubscriptionType.BROKER_PATTERN, "t.*", True)


def cluster(**topics: KnownTopic) -> MetadataSnapshot:
    return MetadataSnapshot(topics=topics)


def info(topic_id: int = 0, *, internal: bool = False) -> KnownTopic:
    return KnownTopic("t", UUID(int=topic_id), internal, ())


@pytest.mark.behaviour("C19")
def test_a_pattern_matches_whole_names_and_internal_topics_on_request() -> None:
    state = SubscriptionState(LATEST)
    state.match_topics(cluster(t=info()), exclude_internal=True)
    assert state.topics == frozenset()
    state.subscribe_pattern(re.compile("t."))
    there = cluster(t1=info(), t2=info(internal=True), t10=info(), u1=info())
    state.match_topics(there, exclude_internal=True)
    assert state.topics == {"t1"}
    state.match_topics(there, exclude_internal=False)
    assert state.topics == {"t1", "t2"}


def test_after_a_seek_no_committed_offset_is_looked_up() -> None:
    state = SubscriptionState(LATEST, in_group=True)
    state.assign([A, B])
    assert state.find_awaiting_committed(0) == [A, B]
    state.seek(A, 3)
    state.request_reset(B, EARLIEST)
    assert state.find_awaiting_committed(0) == []
    state.start_at(A, OffsetAndMetadata(9))
    assert state.state(A).position == 3


def test_reading_starts_at_the_committed_offset_or_by_the_policy() -> None:
    state = SubscriptionState(LATEST, in_group=True)
    state.assign([A, B])
    state.start_at(A, OffsetAndMetadata(9, "", 4))
    state.start_at(B, None)
    state.start_at(C, OffsetAndMetadata(1))
    assert (state.state(A).position, state.state(A).epoch, state.state(A).reset_to) == (9, 4, None)
    assert (state.state(B).position, state.state(B).reset_to) == (None, LATEST)
    assert state.find_awaiting_committed(0) == []


def test_a_partition_with_a_position_is_consumed_up_to_it() -> None:
    state = assigned(A, B)
    state.seek(A, 5, 2)
    assert state.consumed_offsets() == {A: OffsetAndMetadata(5, "", 2)}
    assert (state.next_offset(A), state.next_offset(B)) == (5, None)


def test_records_that_a_loop_has_not_yielded_are_not_consumed_and_are_read_again() -> None:
    state = assigned(A, B)
    state.seek(A, 5)
    waiting = {A: OffsetAndMetadata(3, "", 1), B: OffsetAndMetadata(0), C: OffsetAndMetadata(0)}
    state.loop = SimpleNamespace(next_offsets=lambda: waiting, discard=lambda: None)  # type: ignore[assignment]
    assert state.consumed_offsets() == {A: OffsetAndMetadata(3, "", 1)}
    assert state.next_offset(A) == 3
    state.rewind_unyielded()
    assert (state.state(A).position, state.state(A).epoch, state.state(B).position) == (3, 1, None)


def test_the_position_in_a_recreated_topic_is_reset_by_the_policy() -> None:
    state = assigned(A, B)
    for tp in (A, B):
        state.seek(tp, 7)
        state.state(tp).readable_to = 9
    assert state.reset_recreated_topics(cluster(t=info(1))) == [], "its first id"
    assert state.reset_recreated_topics(cluster(t=info(1))) == []
    assert state.reset_recreated_topics(cluster()) == []
    state.request_reset(B, EARLIEST)
    assert state.reset_recreated_topics(cluster(t=info(2))) == [A], "the other has no position to lose"
    assert (state.state(A).position, state.state(A).reset_to, state.state(A).has_more()) == (None, LATEST, False)
    assert state.state(B).reset_to == EARLIEST


def test_partitions_that_are_held_back_are_not_fetched() -> None:
    state = assigned(A, B)
    for tp in (A, B):
        state.seek(tp, 0)
    state.mark_revoking([A])
    assert state.find_fetchable(0, ()) == [B]


def test_a_failed_reset_is_retried_after_its_backoff() -> None:
    state = assigned(A)
    state.postpone_requests([A], until=3)
    assert state.find_reset_timestamps(2.9) == {}
    assert state.find_reset_timestamps(3) == {A: LATEST}
