"""Exceptions at any point of a producer's calls, as a signal handler raises them in the thread of the user."""

from __future__ import annotations

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.client.conftest import fresh_name
from tests.interrupts import Interrupter, every_point
from tests.patience import PATIENCE

STEP = 5
"""Every so many points are tried, from another one in each call of a test."""


def read_all(servers: str, topic: str) -> list[bytes]:
    """The values of all committed records of the only partition."""
    tp = TopicPartition(topic, 0)
    values: list[bytes] = []
    with Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            values += [record.value for record in consumer.poll(PATIENCE) if record.value is not None]
    return values


@pytest.fixture
def topic(admin: Admin) -> str:
    name = fresh_name()
    admin.create_topics([NewTopic(name, 1)])
    return name


def test_a_producer_sends_and_flushes_after_an_exception_at_any_point_of_a_send_or_a_flush(
    servers: str, topic: str
) -> None:
    sent: list[bytes] = []
    doubtful: set[bytes] = set()
    with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt)):
            try:
                with interrupter:
                    producer.send(topic, b"a %d" % number, partition=0)
                    producer.flush(PATIENCE)
            except KeyboardInterrupt:
                doubtful.add(b"a %d" % number)
            else:
                sent.append(b"a %d" % number)
            producer.send(topic, b"b %d" % number, partition=0)
            sent.append(b"b %d" % number)
            producer.flush(PATIENCE)
    found = read_all(servers, topic)
    assert [value for value in found if value not in doubtful] == sent
    assert len(set(found)) == len(found), "each at most once"
    assert doubtful


def test_a_close_that_an_exception_ends_at_any_point_can_be_called_again(servers: str, topic: str) -> None:
    sent: list[bytes] = []
    for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt)):
        producer = Producer(bootstrap_servers=servers, linger_ms=10_000)
        producer.send(topic, b"%d" % number, partition=0)
        sent.append(b"%d" % number)
        closed(producer, interrupter)
    assert read_all(servers, topic) == sent


def closed(producer: Producer, interrupter: Interrupter) -> None:
    try:
        with interrupter:
            producer.close()
    except KeyboardInterrupt:
        producer.close()


def test_an_admin_answers_after_an_exception_at_any_point_of_a_call(servers: str, topic: str) -> None:
    interrupted = 0
    with Admin(bootstrap_servers=servers) as admin:
        for interrupter in every_point(step=STEP, error=KeyboardInterrupt):
            try:
                with interrupter:
                    admin.describe_topics([topic])
            except KeyboardInterrupt:
                interrupted += 1
            assert topic in admin.describe_topics([topic])
    assert interrupted
