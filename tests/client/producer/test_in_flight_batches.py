"""How what was sent comes to its outcome: by an answer, by the end of its time or of its tries, by a close."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest

from ottla.client.producer.events import BatchFailed
from ottla.client.producer.future import RecordFuture
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, KafkaTimeoutError
from ottla.model import Node, TopicPartition
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse, TopicProduceResponse
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


def test_what_waited_behind_a_batch_that_is_refused_without_end_names_that_refusal() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500)
    story.answers = [refused(ErrorCode.KAFKA_STORAGE_ERROR)] * 99
    futures = story.send(1, 2, 3, 4, 5, 6, 7)
    while not all(future.done() for future in futures):
        story.sender.run_once()
    said = [str(future.exception(0)) for future in futures]
    assert all("within delivery.timeout.ms = 2000, " in each for each in said)
    assert all("KAFKA_STORAGE_ERROR" in each for each in said)
    assert said[0].startswith("1 record for t-0 not delivered")
    assert said[6].startswith("7 records for t-0 not delivered")


def test_what_kept_others_long_ago_is_not_why_later_ones_are_late() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500)
    story.answers = [refused(ErrorCode.KAFKA_STORAGE_ERROR)] * 99
    [first] = story.send(1)
    while not first.done():
        story.sender.run_once()
    story.answers, story.silent = [], True
    story.clock.advance(1.0)
    [second] = story.send(1)
    while not second.done():
        story.sender.run_once()
    assert "KAFKA_STORAGE_ERROR" in str(first.exception(0))
    assert "NETWORK_EXCEPTION" in str(second.exception(0))


def test_what_was_never_sent_says_so() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500, max_in_flight_requests_per_connection=1)
    story.silent = True
    futures = story.send(1, 2)
    while not all(future.done() for future in futures):
        story.sender.run_once()
    sent, waiting = (str(future.exception(0)) for future in futures)
    assert ", sent 2 times: NETWORK_EXCEPTION: no answer within request.timeout.ms = 1500" in sent
    assert ", never sent: NETWORK_EXCEPTION" in waiting


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


def in_flight_to_a_cut_off_leader(**settings: Any) -> tuple[Story, list[RecordFuture]]:
    """A batch is acknowledged, and five that follow it get no answer from node 1."""
    story = Story(**settings)
    story.send(1)
    story.run()
    story.silent = True
    futures = story.send(1, 2, 3, 4, 5)
    while len(story.sent) < 6:
        story.sender.run_once()
    assert story.clock.monotonic() < 1.0, "nothing is given up yet"
    story.silent = False
    return story, futures


def learn_that_node_2_leads(story: Story) -> None:
    assert story.metadata.learn_leaders({TopicPartition("t", 0): (2, 4)}, [Node(2, "h", 2)])


@pytest.mark.behaviour("P4", "P6")
def test_what_has_numbers_goes_to_the_new_leader_at_once_where_the_old_one_is_silent() -> None:
    story, futures = in_flight_to_a_cut_off_leader()
    started = story.clock.monotonic()
    learn_that_node_2_leads(story)
    futures += story.send(6)
    story.run()
    assert all(future.exception(0) is None for future in futures)
    sent = [(channel, first, count) for channel, _, _, first, count in story.sent]
    numbered = [(1, 1), (2, 2), (4, 3), (7, 4), (11, 5)]
    assert sent == [(1, 0, 1), *((1, *each) for each in numbered), *((2, *each) for each in numbered), (2, 16, 6)]
    assert story.clock.monotonic() - started < 1.0, "far less than request.timeout.ms"


@pytest.mark.behaviour("P4", "P6")
def test_what_the_old_leader_says_of_a_batch_that_went_to_the_new_one_changes_nothing() -> None:
    story, futures = in_flight_to_a_cut_off_leader()
    learn_that_node_2_leads(story)
    story.silent = True
    story.sender.run_once()
    assert [channel for channel, *_ in story.sent[6:]] == [2]
    refusal = ProduceResponse([TopicProduceResponse("t", TOPIC, [refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)])])
    asked = [header for _, header, request in story.selector.requests if isinstance(request, ProduceRequest)]
    for header in asked[1:6]:
        story.selector.answer_late(1, header, refusal)
    for _ in range(3):
        story.sender.run_once()
    assert len(story.sent) == 7, "one is in flight to node 2, and is not sent again"
    assert not any(future.done() for future in futures)


def test_without_numbers_what_is_in_flight_waits_for_its_answer_whoever_leads_by_now() -> None:
    story, _ = in_flight_to_a_cut_off_leader(enable_idempotence=False)
    learn_that_node_2_leads(story)
    story.send(6)
    while len(story.sent) < 7:
        story.sender.run_once()
    assert [(channel, count) for channel, *_, count in story.sent] == [*((1, n) for n in (1, 1, 2, 3, 4, 5)), (2, 6)]


def test_an_error_that_keeps_records_for_long_is_reported_once_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ottla.client.producer.retries")
    story = Story(delivery_timeout_ms=120_000)
    story.answers = [refused(ErrorCode.KAFKA_STORAGE_ERROR)] * 12 + [accepted(0)]
    [future] = story.send(1)
    story.run(turns=300)
    assert future.result(0).offset == 0
    lines = [record.getMessage() for record in caplog.records if record.name == "ottla.client.producer.retries"]
    assert len(lines) == 2
    assert lines[0].startswith("[p] records are sent again and again: partition=t-0 seconds=")
    assert "delivery.timeout.ms=120000 error=KAFKA_STORAGE_ERROR: t-0: refused" in lines[0]
    assert lines[1].startswith("[p] records are written again: partition=t-0 seconds=")


def test_an_error_that_passes_soon_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.answers = [refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 2 + [accepted(0)]
    [future] = story.send(1)
    story.run()
    assert future.result(0).offset == 0
    assert "records are sent again" not in caplog.text
