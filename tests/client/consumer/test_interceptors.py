"""Interceptors of a consumer, called before records are returned and after commits."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import ottla
from ottla import Consumer, Producer, TopicPartition, aio
from ottla.client.consumer.records import ConsumerRecords
from ottla.errors import ConfigError
from ottla.model import OffsetAndMetadata
from tests.client.conftest import fresh_name
from tests.client.consumer.conftest import Members, poll_until

COUNT = 6


class Even:
    """Returns every other record, and records its calls."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.committed: list[dict[TopicPartition, int]] = []
        self.closed = 0

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        self.seen += [record.offset for record in records]
        return records.where(lambda record: record.offset % 2 == 0)

    def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.committed.append({place: offset.offset for place, offset in offsets.items()})

    def close(self) -> None:
        self.closed += 1


class Looks:
    """Changes nothing."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_consume(self, records: ConsumerRecords) -> None:
        self.seen += [record.offset for record in records]


class Faulty:
    """Raises in every method."""

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        raise RuntimeError("no")

    on_commit = on_consume


class Confused:
    """Returns objects that are no records."""

    def on_consume(self, records: ConsumerRecords) -> Any:
        return [1, 2, 3]


@pytest.fixture
def place(servers: str, topic: str) -> TopicPartition:
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(COUNT):
            producer.send(topic, b"%d" % number)
    return TopicPartition(topic, 0)


def reads(servers: str, *interceptors: object) -> dict[str, Any]:
    group = {"group_id": fresh_name(), "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return {"bootstrap_servers": servers, "interceptor_classes": interceptors, **group}


def test_each_interceptor_gets_the_records_of_the_one_before_it(servers: str, place: TopicPartition) -> None:
    even, looks = Even(), Looks()
    with Consumer(**reads(servers, even, looks)) as consumer:
        consumer.assign([place])
        records = consumer.poll(20)
        assert [record.offset for record in records] == looks.seen == [0, 2, 4]
        assert even.seen == [0, 1, 2, 3, 4, 5]
        assert records.next_offsets()[place].offset == consumer.position(place) == COUNT
        assert [record.value for record in pickle.loads(pickle.dumps(records))] == [b"0", b"2", b"4"]
        consumer.commit()
        consumer.commit_async({place: 3}).add_done_callback(lambda done: None)
        poll_until([consumer], lambda: len(even.committed) == 2)
    assert even.committed == [{place: COUNT}, {place: 3}]
    assert even.closed == 1


def test_a_loop_yields_the_records_of_interceptors_and_keeps_its_position(servers: str, place: TopicPartition) -> None:
    with Consumer(**reads(servers, Even())) as consumer:
        consumer.assign([place])
        loop = iter(consumer)
        assert [next(loop).offset for _ in range(2)] == [0, 2]
        assert consumer.position(place) <= 4, "nothing that is to come counts as read"
        assert next(loop).offset == 4


def test_a_failing_interceptor_loses_no_record(
    servers: str, place: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks()
    with Consumer(**reads(servers, Faulty(), Confused(), looks)) as consumer:
        consumer.assign([place])
        assert len(consumer.poll(20)) == COUNT
        consumer.commit()
    assert len(looks.seen) == COUNT
    assert "failed in on_consume; records and offsets are not affected" in caplog.text
    assert "failed in on_commit" in caplog.text
    assert "result=[1, 2, 3]" in caplog.text


def test_the_interceptors_of_a_member_are_called_for_automatic_commits(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    even = Even()
    consumer = member(interceptor_classes=[even], auto_commit_interval_ms=10)
    consumer.subscribe([shared_topic])
    group_producer.send(shared_topic, b"x", partition=0).result(20)
    poll_until([consumer], lambda: {TopicPartition(shared_topic, 0): 1}.items() <= last(even.committed).items())


def last(committed: list[dict[TopicPartition, int]]) -> dict[TopicPartition, int]:
    return committed[-1] if committed else {}


def test_a_consumer_for_asyncio_has_them_too(servers: str, place: TopicPartition) -> None:
    even = Even()

    async def read() -> list[int]:
        async with aio.Consumer(**reads(servers, even)) as consumer:
            consumer.assign([place])
            records = await consumer.poll(20)
            await consumer.commit()
            return [record.offset for record in records]

    assert asyncio.run(read()) == [0, 2, 4]
    assert (even.committed, even.closed) == ([{place: COUNT}], 1)


class Awaited:
    async def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return records


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("com.example.Interceptor", "'com.example.Interceptor' is a name, and none is imported; hand over the object"),
        (Even, "is a class; hand over an object of it"),
        (object(), r"has neither on_consume\(records\) nor on_commit\(offsets\) nor on_event\(event\)"),
        (Awaited(), "has coroutines; its methods are called, not awaited"),
    ],
    ids=["name", "class", "neither", "coroutine"],
)
def test_objects_that_are_no_interceptors_are_rejected(wrong: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Consumer(bootstrap_servers="localhost:1", interceptor_classes=[wrong])


def test_an_admin_client_has_no_interceptors() -> None:
    with pytest.raises(ottla.errors.OttlaError, match="only a consumer or a producer has records"):
        ottla.Admin({"interceptor.classes": [Even()]}, bootstrap_servers="localhost:1")
