"""The outcome of a sent batch: by a response, by its timeout, by its retry limit, or by a close."""

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
def test_a_batch_is_retried_up_to_retries_and_fails_with_the_last_error(*, idempotent: bool) -> None:
    story = Story(enable_idempotence=idempotent, retries=2)
    story.answers = [refused(ErrorCode.NOT_ENOUGH_REPLICAS)] * 9
    [future] = story.send(1)
    story.run()
    assert len(story.sent) == 3
    error = future.exception(0)
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.behaviour("P4")
def test_the_parts_of_a_split_batch_keep_their_order_with_one_request_in_flight() -> None:
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
    assert story.sender.batches.unobserved.take_error() is not None
    assert story.sender.sensors.failed.sensor_for("t").total == 3


def test_the_sender_wakes_at_the_earliest_expiry_of_several_batches() -> None:
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


def test_a_batch_that_expires_behind_a_rejected_batch_names_its_error() -> None:
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


def test_an_old_error_is_not_named_for_later_batches() -> None:
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


def test_the_error_of_a_batch_that_was_never_sent_states_that() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500, max_in_flight_requests_per_connection=1)
    story.silent = True
    futures = story.send(1, 2)
    while not all(future.done() for future in futures):
        story.sender.run_once()
    sent, waiting = (str(future.exception(0)) for future in futures)
    assert ", sent 2 times: NETWORK_EXCEPTION: no answer within request.timeout.ms = 1500" in sent
    assert ", never sent: NETWORK_EXCEPTION" in waiting


def test_a_forced_close_reports_the_undelivered_records_and_fails_each(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    trace = story.events.trace()
    story.silent = True
    futures = story.send(2, 3)
    story.sender.run_once()
    with caplog.at_level(logging.ERROR):
        story.sender.batches.fail_remaining()
    assert "undelivered records records=5" in caplog.text
    assert all(isinstance(future.exception(0), IllegalStateError) for future in futures)
    assert [moment.event.records for moment in trace if isinstance(moment.event, BatchFailed)] == [2, 3]


def test_without_acks_no_response_is_waited_for() -> None:
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
    assert story.metadata.update_leaders({TopicPartition("t", 0): (2, 4)}, [Node(2, "h", 2)])


@pytest.mark.behaviour("P4", "P6")
def test_a_batch_with_sequences_is_sent_to_the_new_leader_at_once_if_the_old_one_is_silent() -> None:
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
def test_a_response_of_the_old_leader_to_a_batch_resent_to_the_new_one_is_ignored() -> None:
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


def test_without_sequences_an_in_flight_batch_waits_for_its_response_after_a_leader_change() -> None:
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
    assert lines[0].startswith("[p] records are retried without success partition=t-0 seconds=")
    assert "delivery.timeout.ms=120000 error=KAFKA_STORAGE_ERROR: t-0: rejected" in lines[0]
    assert lines[1].startswith("[p] records are written again partition=t-0 seconds=")


def test_an_error_that_passes_soon_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.answers = [refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 2 + [accepted(0)]
    [future] = story.send(1)
    story.run()
    assert future.result(0).offset == 0
    assert "records are sent again" not in caplog.text
