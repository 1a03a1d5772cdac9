from __future__ import annotations

import threading
from random import Random
from uuid import UUID

import pytest

from ottla.client.metadata.metadata import Metadata
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, OttlaError
from ottla.model import Node, TopicPartition
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0 = TopicPartition("t", 0)


class NoJitter(Random):
    def uniform(self, a: float, b: float) -> float:
        return 1.0


def metadata(max_age_ms: float = 300_000, topic_idle_ms: float = float("inf")) -> Metadata:
    backoff = ExponentialBackoff(100, 1000, NoJitter())
    return Metadata([Node(-1, "boot", 1)], max_age_ms=max_age_ms, backoff=backoff, topic_idle_ms=topic_idle_ms)


def answer(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="a", port=2)], topics=topics)


def topic(
    name: str = "t", *, leader: int = 1, epoch: int = 0, error: int = 0, identity: int = 7
) -> MetadataResponseTopic:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponseTopic(error_code=error, name=name, topic_id=UUID(int=identity), partitions=[part])


def test_metadata_starts_from_the_bootstrap_addresses_and_is_requested_at_once() -> None:
    known = metadata()
    assert known.cluster.nodes == {-1: Node(-1, "boot", 1)}
    assert known.time_to_next_update(0) == 0


def test_an_answer_replaces_the_bootstrap_addresses() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    assert known.cluster.leader(T0) == Node(1, "a", 2)
    assert known.cluster.topic_id("t") == UUID(int=7)
    assert known.cluster.names == {UUID(int=7): "t"}


def test_metadata_is_refreshed_at_its_max_age_and_on_request() -> None:
    known = metadata(max_age_ms=5000)
    known.update(answer(), 10)
    assert known.time_to_next_update(12) == 3
    known.request_update()
    assert known.time_to_next_update(12) == 0


def test_an_update_requested_during_a_request_causes_one_more_request() -> None:
    """The response may have been made before what the caller has just learned, such as that a leader is unreachable."""
    known = metadata()
    known.next_request(0)
    known.request_update()
    known.update(answer(topic()), 0.05)
    assert known.time_to_next_update(0.05) == 0, "the response brought news"
    known.next_request(0.06)
    known.update(answer(topic()), 0.08)
    assert known.time_to_next_update(0.08) == 300


def test_an_update_requested_during_a_request_waits_if_its_response_brought_no_news() -> None:
    known = metadata()
    known.update(answer(topic()), 0)
    known.next_request(1)
    known.request_update()
    known.update(answer(topic()), 1.05)
    assert known.time_to_next_update(1.05) == pytest.approx(0.05), "retry.backoff.ms lie between two requests"


def test_a_new_topic_is_requested_at_once() -> None:
    known = metadata()
    known.update(answer(), 0)
    known.track_topic("t", 0)
    assert known.time_to_next_update(0) == 0
    assert [t.name for t in known.next_request(0).topics or ()] == ["t"]


def requested_names(known: Metadata, now: float) -> list[str]:
    return sorted(each.name or "" for each in known.next_request(now).topics or ())


def test_a_new_topic_is_requested_alone_and_the_known_ones_stay() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    known.track_topic("new", 1)
    assert requested_names(known, 1) == ["new"]
    known.update(answer(topic("new", identity=8)), 1)
    assert known.cluster.leader(T0) == Node(1, "a", 2)
    assert known.cluster.names == {UUID(int=7): "t", UUID(int=8): "new"}
    assert known.time_to_next_update(1) == 299, "the known ones are refreshed at their age, not later"
    assert requested_names(known, 300) == ["new", "t"]


def test_all_topics_are_requested_after_an_update_that_was_requested_during_the_request_for_a_new_one() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    known.track_topic("new", 1)
    known.next_request(1)
    known.request_update()
    known.update(answer(topic("new")), 1)
    assert requested_names(known, 2) == ["new", "t"]


def test_a_topic_that_is_being_created_is_requested_again_without_the_known_ones() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    known.track_topic("new", 1)
    known.next_request(1)
    known.update(answer(topic("new", error=ErrorCode.LEADER_NOT_AVAILABLE)), 1)
    assert known.cluster.errors == {"new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert requested_names(known, 2) == ["new"]
    known.update(answer(topic("new")), 2)
    assert known.cluster.errors == {}


def test_an_unknown_topic_is_requested_again_after_a_growing_backoff() -> None:
    known = metadata()
    known.track_topic("t", 0)
    for attempt, pause in enumerate([0.1, 0.2, 0.4, 0.8, 1.0, 1.0]):
        known.next_request(attempt * 10)
        known.update(answer(topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), attempt * 10)
        assert known.time_to_next_update(attempt * 10) == pytest.approx(pause)
    assert known.cluster.errors == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_without_a_leader_is_requested_again() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic(leader=-1)), 0)
    assert known.cluster.leader(T0) is None
    assert known.time_to_next_update(0.2) == 0


def test_an_answer_from_a_broker_that_is_behind_does_not_undo_a_newer_leader() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic(epoch=5)), 0)
    known.update(answer(topic(leader=9, epoch=4)), 1)
    assert known.cluster.leader_epoch(T0) == 5
    known.update(answer(topic(leader=9, epoch=0, identity=8)), 2)
    assert known.cluster.leader_epoch(T0) == 0, "a topic made anew begins from epoch 0"


def test_a_topic_without_a_leader_keeps_its_known_metadata() -> None:
    known = metadata()
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    known.update(answer(topic(error=ErrorCode.LEADER_NOT_AVAILABLE)), 1)
    assert known.cluster.leader(T0) is not None


def test_a_topic_that_is_not_used_is_forgotten() -> None:
    known = metadata(topic_idle_ms=5000)
    known.track_topic("old", 0)
    known.track_topic("used", 0)
    known.touch_topic("used", 4)
    assert [t.name for t in known.next_request(6).topics or ()] == ["used"]


def test_a_topic_that_stays_unknown_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    known = metadata()
    known.track_topic("t", 0)
    for now in range(20):
        known.update(answer(topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), now)
    assert caplog.text.count("'t': UNKNOWN_TOPIC_OR_PARTITION") == 1


def test_waiters_are_notified_of_an_update() -> None:
    known = metadata()
    thread = threading.Thread(target=known.update, args=(answer(), 0))
    thread.start()
    thread.join()
    assert known.is_newer_than(0)


def test_a_waiter_gets_an_error_at_its_timeout() -> None:
    assert metadata().is_newer_than(0) is False


def test_a_waiter_for_an_impossible_update_gets_the_error() -> None:
    known = metadata()
    known.set_fatal_error(OttlaError("too old"))
    with pytest.raises(OttlaError, match="too old"):
        known.is_newer_than(0)
    known.update(answer(), 0)
    assert known.is_newer_than(0), "an answer takes it back"


def test_requests_with_unchanged_responses_back_off_for_all_callers() -> None:
    known = metadata()
    now, pauses = 0.0, []
    for _ in range(7):
        known.next_request(now)
        known.update(answer(topic()), now)
        known.request_update()
        pauses.append(known.time_to_next_update(now))
        now += pauses[-1]
    assert pauses == pytest.approx([0.1, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    known.next_request(now)
    known.update(answer(topic(leader=2, epoch=1)), now)
    known.request_update()
    assert known.time_to_next_update(now) == pytest.approx(0.1), "there was news"


def test_after_a_rest_the_pauses_between_requests_are_short_again() -> None:
    known = metadata()
    for now in (0.0, 1.0, 2.0, 3.0, 60.0):
        known.next_request(now)
        known.update(answer(topic()), now)
    known.request_update()
    assert known.time_to_next_update(60.0) == pytest.approx(0.1)


def test_a_topic_that_is_requested_for_the_first_time_skips_the_backoff() -> None:
    known = metadata()
    known.next_request(0)
    known.update(answer(topic()), 0)
    known.request_update()
    assert known.time_to_next_update(0) > 0
    known.track_topic("t", 0)
    assert known.time_to_next_update(0) == 0
    known.next_request(0)
    known.track_topic("t", 0)
    known.update(answer(topic()), 0)
    known.request_update()
    assert known.time_to_next_update(0) > 0, "it was asked for"
    known.track_only(["t", "u"], 0)
    assert known.time_to_next_update(0) == 0
