"""Injected faults as the program under test sees them."""

from __future__ import annotations

import time

import pytest

from ottla import Broker, Consumer, Producer
from ottla.errors import ConfigError, IllegalStateError
from ottla.testing import Topic, assert_records
from ottla.testing.broker import TestedBroker
from ottla.testing.faults.fault import Fault
from tests.patience import eventually

DEADLINE = 60.0


def test_a_delay_fault_lasts_the_given_time(broker: TestedBroker, topic: Topic, producer: Producer) -> None:
    producer.send(topic, b"first").result(DEADLINE)
    with broker.faults.delay("Produce", ms=200) as fault:
        before = time.monotonic()
        producer.send(topic, b"second").result(DEADLINE)
        assert time.monotonic() - before >= 0.2
    assert fault.happened == 1
    assert_records(topic, ["first", "second"], timeout=DEADLINE)


@pytest.mark.parametrize("plant", ["drop", "drop_answer"])
def test_a_retry_after_a_lost_connection_is_written_once(
    broker: TestedBroker, topic: Topic, producer: Producer, plant: str
) -> None:
    with getattr(broker.faults, plant)("Produce", times=2) as fault:
        producer.send(topic, b"once").result(DEADLINE)
    assert fault.happened == 2
    assert_records(topic, ["once"], timeout=DEADLINE)


def test_the_nth_request_fails_and_no_other(broker: TestedBroker, topic: Topic, producer: Producer) -> None:
    fault = broker.faults.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", nth=2)
    producer.send(topic, b"1").result(DEADLINE)
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        producer.send(topic, b"2").result(DEADLINE)
    assert (fault.seen, fault.happened) == (2, 1)
    assert_records(topic, ["1"], timeout=DEADLINE)


def test_a_held_request_continues_when_the_fault_is_removed(
    broker: TestedBroker, topic: Topic, producer: Producer
) -> None:
    fault = broker.faults.hang("Produce")
    sent = producer.send(topic, b"late")
    eventually(lambda: fault.happened)
    assert not sent.done()
    fault.undo()
    sent.result(DEADLINE)
    assert_records(topic, ["late"], timeout=DEADLINE)


def test_a_client_that_disconnects_while_held_is_forgotten(broker: TestedBroker, topic: Topic) -> None:
    fault = broker.faults.hang("Produce")
    settings = {**broker.client_settings(), "request.timeout.ms": 100, "delivery.timeout.ms": 150, "linger.ms": 0}
    with Producer(settings) as producer:
        sent = producer.send(topic, b"given up")
        eventually(sent.done)
    assert sent.exception() is not None
    fault.undo()
    assert_records(topic, [], timeout=DEADLINE)


def test_a_fetch_of_a_session_fails_for_the_partitions_that_it_does_not_name(
    broker: TestedBroker, topic: Topic, producer: Producer
) -> None:
    settings = {**broker.client_settings(), "group.id": "readers", "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.subscribe([str(topic)])
        assert next_value(consumer, producer, topic, b"1") == b"1"
        with broker.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", nth=1) as fault:
            assert next_value(consumer, producer, topic, b"2", fault) == b"2"


def next_value(
    consumer: Consumer, producer: Producer, topic: Topic, value: bytes, fault: Fault | None = None
) -> bytes | None:
    found: list[bytes | None] = []
    producer.send(topic, value).result(DEADLINE)
    deadline = time.monotonic() + DEADLINE
    while not found or (fault is not None and not fault.happened):
        assert time.monotonic() < deadline
        found += [record.value for record in consumer.poll(0.05)]
    assert len(found) == 1
    return found[0]


def test_requests_are_not_delayed_without_faults(broker: TestedBroker) -> None:
    server = broker.server
    assert server is not None
    handler = server.handler
    usual = handler.execute
    with broker.faults.drop("Fetch"), broker.faults.hang("Heartbeat"):
        assert handler.execute != usual
    assert handler.execute == usual
    assert not {"handle", "execute"} & vars(handler).keys()


def test_a_misspelt_name_is_an_error_with_the_closest_name(broker: TestedBroker) -> None:
    faults = broker.faults
    with pytest.raises(ConfigError, match=r"unknown API 'Produse'; did you mean 'Produce'\?"):
        faults.delay("Produse", ms=1)
    with pytest.raises(ConfigError, match="did you mean 'NOT_LEADER_OR_FOLLOWER'"):
        faults.fail("Produce", error="NOT_LEADER_OR_FOLOWER")
    with pytest.raises(ConfigError, match="unknown error 'NONE'"):
        faults.fail("Produce", error="NONE")
    with pytest.raises(ConfigError, match="invalid value 'soon' for ms: expected milliseconds, such as ms=300"):
        broker.faults.delay("Fetch", ms="soon")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="invalid value 0 for nth: expected a number from 1"):
        faults.drop(nth=0)
    with pytest.raises(ConfigError, match="exclude each other"):
        faults.drop(nth=1, times=1)


def test_a_broker_elsewhere_has_no_faults() -> None:
    broker = TestedBroker()
    with pytest.raises(IllegalStateError, match="running broker in this process"):
        broker.faults.drop()
    assert isinstance(broker, Broker)
