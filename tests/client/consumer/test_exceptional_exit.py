"""The offsets committed after an exception ends a consumer: only those that a later poll, or the loop, has passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition, aio
from tests.client.conftest import fresh_name
from tests.client.consumer.conftest import fill_topic
from tests.patience import PATIENCE

COUNT = 1_000
PER_BATCH = 50
PER_POLL = 500
WAYS = ("assign", "classic", "consumer")


class Failed(Exception):
    """Raised by the application in these tests."""


@pytest.fixture
def topic(group_admin: Admin, group_producer: Producer) -> str:
    """A topic of one partition with `COUNT` records."""
    name = fresh_name()
    group_admin.create_topics([NewTopic(name, 1)])
    for _ in range(COUNT // PER_BATCH):
        fill_topic(group_producer, name, PER_BATCH, partitions=1)
    return name


def settings_for(broker: Broker, group_id: str, way: str, **others: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "group_id": group_id,
        "auto_offset_reset": "earliest",
        "group_protocol": "classic" if way == "assign" else way,
        "max_poll_records": PER_POLL,
        **others,
    }


def begin(consumer: Any, way: str, topic: str) -> None:
    if way == "assign":
        consumer.assign([TopicPartition(topic, 0)])
    else:
        consumer.subscribe([topic])


def committed_offset(broker: Broker, group_id: str, topic: str) -> int:
    """The committed offset of the topic's only partition, 0 if there is none."""
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id=group_id) as consumer:
        found = consumer.committed([tp])[tp]
    return 0 if found is None else found.offset


def by_poll(consumer: Consumer) -> Iterator[int]:
    while True:
        for record in consumer.poll(PATIENCE):
            yield record.offset


def by_loop(consumer: Consumer) -> Iterator[int]:
    for record in consumer:
        yield record.offset


def by_arrow(consumer: Consumer) -> Iterator[Any]:
    while True:
        yield from consumer.poll_arrow(PATIENCE, max_bytes=1)["offset"].to_pylist()


def by_columns(consumer: Consumer) -> Iterator[int]:
    while True:
        for _, columns in consumer.poll_columns(PATIENCE, max_bytes=1):
            yield from columns.offsets


Read = Callable[[Consumer], Iterator[Any]]


def consume(settings: dict[str, Any], way: str, topic: str, use: Callable[[Consumer], None]) -> None:
    """Use a consumer in a `with` block."""
    with Consumer(settings) as consumer:
        begin(consumer, way, topic)
        use(consumer)


def failing(read: Read, at: int, error: type[BaseException] = Failed) -> Callable[[Consumer], None]:
    """An application that reads up to an offset and raises there."""

    def use(consumer: Consumer) -> None:
        for offset in read(consumer):
            if offset == at:
                raise error

    return use


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("error", [Failed, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_in_the_application_commits_none_of_the_batch_that_poll_returned_last(
    group_broker: Broker, group_id: str, topic: str, way: str, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        consume(settings_for(group_broker, group_id, way), way, topic, failing(by_poll, PER_POLL + 99, error))
    assert committed_offset(group_broker, group_id, topic) == PER_POLL


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_in_a_loop_over_the_consumer_commits_the_records_before_the_one_that_failed(
    group_broker: Broker, group_id: str, topic: str, way: str
) -> None:
    with pytest.raises(Failed):
        consume(settings_for(group_broker, group_id, way), way, topic, failing(by_loop, 700))
    assert committed_offset(group_broker, group_id, topic) == 700


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("read", [by_arrow, by_columns])
def test_an_exception_commits_none_of_the_columns_that_were_returned_last(
    group_broker: Broker, group_id: str, topic: str, read: Read
) -> None:
    settings = settings_for(group_broker, group_id, "assign", max_partition_fetch_bytes=100)
    with pytest.raises(Failed):
        consume(settings, "assign", topic, failing(read, 701))
    committed = committed_offset(group_broker, group_id, topic)
    assert 0 < committed <= 701, "batches are of any size"


@pytest.mark.behaviour("C6")
def test_explicit_commits_of_the_application_survive_an_exception(
    group_broker: Broker, group_id: str, topic: str
) -> None:
    def use(consumer: Consumer) -> None:
        for offset in by_poll(consumer):
            if offset == 30:
                consumer.commit({TopicPartition(topic, 0): 31})
            if offset == 99:
                raise Failed

    with pytest.raises(Failed):
        consume(settings_for(group_broker, group_id, "assign"), "assign", topic, use)
    assert committed_offset(group_broker, group_id, topic) == 31


@pytest.mark.behaviour("C6")
def test_a_record_that_was_committed_in_a_loop_stays_committed_after_an_exception(
    group_broker: Broker, group_id: str, topic: str
) -> None:
    def use(consumer: Consumer) -> None:
        for offset in by_loop(consumer):
            if offset == 30:
                consumer.commit()
                raise Failed

    with pytest.raises(Failed):
        consume(settings_for(group_broker, group_id, "assign"), "assign", topic, use)
    assert committed_offset(group_broker, group_id, topic) == 31


@pytest.mark.behaviour("C6")
def test_a_consumer_that_is_closed_without_an_exception_commits_all_that_it_returned(
    group_broker: Broker, group_id: str, topic: str
) -> None:
    with Consumer(settings_for(group_broker, group_id, "assign")) as consumer:
        begin(consumer, "assign", topic)
        for offset in by_poll(consumer):
            if offset == PER_POLL + 99:
                break
    assert committed_offset(group_broker, group_id, topic) == COUNT


async def aio_poll(consumer: aio.Consumer) -> None:
    while True:
        for record in await consumer.poll(PATIENCE):
            if record.offset == PER_POLL + 99:
                raise Failed


async def aio_loop(consumer: aio.Consumer) -> None:
    async for record in consumer:
        if record.offset == PER_POLL + 99:
            raise Failed


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("read", "committed"), [(aio_poll, PER_POLL), (aio_loop, PER_POLL + 99)])
def test_an_exception_in_asyncio_commits_only_what_a_later_poll_or_the_loop_has_passed(
    group_broker: Broker, group_id: str, topic: str, read: Any, committed: int, way: str
) -> None:
    async def consume() -> None:
        async with aio.Consumer(settings_for(group_broker, group_id, way)) as consumer:
            begin(consumer, way, topic)
            await read(consumer)

    with pytest.raises(Failed):
        asyncio.run(consume())
    assert committed_offset(group_broker, group_id, topic) == committed
