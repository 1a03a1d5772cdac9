"""How what was sent comes to its outcome: by an answer, by the end of its time or of its tries, by a close."""

from __future__ import annotations

import logging
import uuid

import pytest

from ottla.client.producer.events import BatchFailed
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, KafkaTimeoutError
from ottla.protocol.messages.produce import ProduceRequest
from tests.client.producer import test_sender
from tests.client.producer.test_sender import TOPIC, Story, accepted, refused


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_batch_is_tried_as_often_as_retries_says_and_fails_with_the_last_refusal(*, idempotent: bool) -> None:
    story = Story(enable_idempotence=idempotent, retries=2)
    story.answers = [refused(ErrorCode.NOT_ENOUGH_REPLICAS)] * 9
    [future] = story.send(1)
    story.run()
    assert len(story.sent) == 3
    error = future.exception(0)
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.behaviour("P4")
def test_the_parts_of_a_batch_that_is_too_large_go_where_one_request_at_a_time_keeps_the_order() -> None:
    story = Story(max_in_flight_requests_per_connection=1)
    story.answers = [refused(ErrorCode.MESSAGE_TOO_LARGE)]
    futures = story.send(8, 1)
    story.run()
    assert [(first, count) for *_, first, count in story.sent] == [(0, 8), (0, 4), (4, 4), (8, 1)]
    assert all(future.exception(0) is None for future in futures)


def test_records_that_failed_are_counted_and_those_that_arrived_are_not() -> None:
    story = Story()
    story.answers = [accepted(0), refused(ErrorCode.INVALID_RECORD), accepted(0)]
    story.send(1, 3, 1)
    story.run()
    assert story.sender.batches.unheard.take() is not None
    assert story.sender.sensors.failed.of("t").total == 3


def test_the_sender_wakes_when_the_first_of_several_batches_has_no_time_left() -> None:
    story = Story(enable_idempotence=False, delivery_timeout_ms=2000, request_timeout_ms=1500)
    story.silent = True
    [first] = story.send(1)
    while not story.sent:
        story.sender.run_once()
    story.clock.advance(1.0)
    [second] = story.send(1)
    story.sender.run_once()
    while not first.done():
        story.sender.run_once()
    assert isinstance(first.exception(0), KafkaTimeoutError)
    assert story.clock.monotonic() == pytest.approx(2.0, abs=0.1)
    assert not second.done()


def test_a_forced_close_says_how_many_records_it_leaves_and_fails_each(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    trace = story.events.trace()
    story.silent = True
    futures = story.send(2, 3)
    story.sender.run_once()
    with caplog.at_level(logging.ERROR):
        story.sender.batches.abort()
    assert "5 records undelivered" in caplog.text
    assert all(isinstance(future.exception(0), IllegalStateError) for future in futures)
    assert [moment.event.records for moment in trace if isinstance(moment.event, BatchFailed)] == [2, 3]


def test_without_acks_nothing_is_waited_for() -> None:
    story = Story(enable_idempotence=False, acks=0)
    story.silent = True
    [future] = story.send(1)
    story.run(6)
    assert future.result(0).offset == -1
    assert [request.acks for _, _, request in story.selector.requests if isinstance(request, ProduceRequest)] == [0]


@pytest.mark.parametrize(("topic_id", "version"), [(TOPIC, 13), (uuid.UUID(int=0), 12)])
def test_a_topic_that_its_broker_gave_no_id_is_written_to_by_its_name(
    topic_id: uuid.UUID, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_sender, "TOPIC", topic_id)
    story = Story()
    [future] = story.send(1)
    story.run()
    assert future.exception(0) is None
    assert story.versions(ProduceRequest) == [version]
