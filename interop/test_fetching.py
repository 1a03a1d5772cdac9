"""Fetching with our consumer at both brokers: fetch sessions, and the visible records of transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as ConfluentProducer

from interop.conftest import NewTopicName
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.schema import replace
from tests.broker.wire import Wire, fetch

PATIENCE = 30.0
PARTITIONS = 12


def read(consumer: Consumer, count: int) -> list[str]:
    """Read `count` records and return their values, sorted. Returns fewer if no more arrive before a timeout."""
    values: list[str] = []
    while len(values) < count and (records := consumer.poll(PATIENCE)):
        values += [(record.value or b"").decode() for record in records]
    return sorted(values)


def test_a_fetch_session_continues_over_many_responses(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = f"many-{fresh_topic(any_broker)}"
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)])
    settings = {"bootstrap.servers": any_broker, "auto.offset.reset": "earliest", "fetch.max.wait.ms": 50}
    with Producer(bootstrap_servers=any_broker) as producer, Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, n) for n in range(PARTITIONS)])
        for turn in range(5):
            for n in range(PARTITIONS):
                producer.send(topic, b"%d-%02d" % (turn, n), partition=n)
            producer.flush()
            assert read(consumer, PARTITIONS) == [f"{turn}-{n:02}" for n in range(PARTITIONS)]
        (session,) = (s for s in consumer._core.fetcher._sessions.values() if s._session_id)
        assert session._epoch >= 5


@pytest.mark.parametrize("version", [4, 5, 7, 11, 12])
def test_a_fetch_outside_of_the_log_receives_the_same_bytes_as_from_kafka(
    ottla_broker: str, apache_kafka: str, version: int
) -> None:
    answers = [outside(address, version) for address in (ottla_broker, apache_kafka)]
    assert answers[0] == answers[1]


def outside(address: str, version: int) -> list[bytes]:
    """Fetch below the log start, at its end and far beyond, and return the responses without correlation ids."""
    topic = f"outside-{version}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 1)])
        with Producer(bootstrap_servers=address) as producer:
            for _ in range(10):
                producer.send(topic, b"x").result(PATIENCE)
    with Wire(address) as wire:
        gone = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 4)])
        (answer,) = wire.ask(DeleteRecordsRequest([gone], 30_000)).topics
        assert answer.partitions[0].error_code == 0
        requests = [
            replace(fetch(topic, offset), isolation_level=level) for offset in (0, 3, 11, 99, -1) for level in (0, 1)
        ]
        return [bytes(wire.receive_frame_of(request, version)[4:]) for request in requests]


@pytest.fixture(scope="module")
def transactions(apache_kafka: str, fresh_topic: NewTopicName) -> Iterator[tuple[str, str]]:
    """A broker and a topic with a committed, an aborted, a committed and an open transaction, of two records each."""
    topic = fresh_topic(apache_kafka)
    producer = ConfluentProducer({"bootstrap.servers": apache_kafka, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(PATIENCE)
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for record in "ab":
            producer.produce(topic, f"{number}{record}", partition=0)
        producer.flush(PATIENCE)
        end(PATIENCE)
    producer.begin_transaction()
    for record in "ab":
        producer.produce(topic, f"3{record}", partition=0)
    producer.flush(PATIENCE)
    yield apache_kafka, topic
    producer.abort_transaction(PATIENCE)


SEEN = {
    "read_committed": (["0a", "0b", "2a", "2b"], 9),
    "read_uncommitted": (["0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b"], 11),
}
"""The visible values, and the position after them. A transaction ends with a marker, which has an offset of its own."""


@pytest.mark.behaviour("C20")
@pytest.mark.parametrize("isolation_level", SEEN)
@pytest.mark.parametrize("face", ["records", "columns"])
def test_the_isolation_level_selects_the_visible_transactions(
    transactions: tuple[str, str], isolation_level: str, face: str
) -> None:
    address, topic = transactions
    tp = TopicPartition(topic, 0)
    seen, end = SEEN[isolation_level]
    settings = {"bootstrap.servers": address, "isolation.level": isolation_level, "fetch.max.wait.ms": 50}
    with Consumer(settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        values: list[str] = []
        while consumer.position(tp) < end:
            if face == "records":
                values += [(record.value or b"").decode() for record in consumer.poll(1.0)]
            else:
                found = consumer.poll_arrow(1.0)["value"].to_pylist()
                values += [value.decode() for value in found if value is not None]
        assert values == seen
        assert consumer.end_offsets([tp]) == {tp: end}
        assert not consumer.poll(0.2)
        assert consumer.position(tp) == end
        assert consumer.current_lag(tp) == 0
