"""Unknown topics are requested at a growing interval, and reported once after a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ottla import Admin, Consumer, KafkaTimeoutError, NewTopic, Producer, TopicPartition, aio
from ottla.client.metadata.metadata import Metadata
from tests.client.conftest import NewTopicName, eventually, fresh_name

SPAN = 3.0
MOST = 9
"""Requests in `SPAN`: at 0, 0.1, 0.2, 0.4, 0.8 s and so on after the one before, up to a second; and one at the start."""
Requests = list[tuple[Metadata, float]]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Record the Metadata requests of this process from here on, with client and time."""
    moments: Requests = []
    next_request = Metadata.next_request

    def counted(metadata: Metadata, now: float) -> Any:
        moments.append((metadata, time.monotonic()))
        return next_request(metadata, now)

    monkeypatch.setattr(Metadata, "next_request", counted)
    return moments


def check(requests: Requests, began: float, caplog: pytest.LogCaptureFixture, topic: str, partition: int) -> None:
    """Few requests with growing pauses, and one warning that names partition and topic and what there is."""
    by_client: dict[int, list[float]] = {}
    for metadata, moment in requests:
        if moment >= began:
            by_client.setdefault(id(metadata), []).append(moment)
    mine = max(by_client.values(), key=len)  # other clients of this process ask as well, each for itself
    assert 2 <= len(mine) <= MOST
    assert len([a for a, b in pairwise(mine) if b - a < 0.07]) <= 1, "the first may be for a new topic"
    line = f"partition does not exist, waiting for it: topic={topic} partition={partition} existing=0 to 1"
    assert caplog.text.count(line) == 1


def test_a_send_to_a_partition_that_does_not_exist(
    servers: str, new_topic: NewTopicName, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap_servers=servers, max_block_ms=int(SPAN * 1000)) as producer:
        began = time.monotonic()
        with pytest.raises(KafkaTimeoutError, match=f"topic '{topic}' has partitions 0 to 1, and 99 was not created"):
            producer.send(topic, b"v", partition=99)
    check(requests, began, caplog, topic, 99)


def test_sends_of_many_tasks_to_a_partition_that_does_not_exist(
    servers: str, new_topic: NewTopicName, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(2)

    async def story() -> None:
        async with aio.Producer(bootstrap_servers=servers, max_block_ms=int(SPAN * 1000)) as producer:
            sends = [producer.send(topic, b"v", partition=99) for _ in range(50)]
            outcomes = await asyncio.gather(*sends, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {KafkaTimeoutError}

    began = time.monotonic()
    asyncio.run(story())
    check(requests, began, caplog, topic, 99)


def wait(consumer: Consumer, tp: TopicPartition) -> None:
    """Poll for a while; nothing can come."""
    deadline = time.monotonic() + SPAN
    eventually(lambda: consumer.poll(0.2) or time.monotonic() >= deadline)


def seek_and_wait(consumer: Consumer, tp: TopicPartition) -> None:
    consumer.seek(tp, 5)
    wait(consumer, tp)


def request_position(consumer: Consumer, tp: TopicPartition) -> None:
    with pytest.raises(Exception, match="has partitions 0 to 1, not 99"):
        consumer.position(tp, SPAN)


@pytest.mark.parametrize("how", [wait, seek_and_wait, request_position])
def test_a_consumer_of_a_partition_that_does_not_exist(
    servers: str,
    new_topic: NewTopicName,
    requests: Requests,
    caplog: pytest.LogCaptureFixture,
    how: Callable[[Consumer, TopicPartition], None],
) -> None:
    tp = TopicPartition(new_topic(2), 99)
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        began = time.monotonic()
        consumer.assign([tp])
        how(consumer, tp)
    check(requests, began, caplog, tp.topic, 99)


def test_a_task_that_polls_a_partition_that_does_not_exist(
    servers: str, new_topic: NewTopicName, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    tp = TopicPartition(new_topic(2), 99)

    async def story() -> None:
        async with aio.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([tp])
            deadline = time.monotonic() + SPAN
            while time.monotonic() < deadline:
                assert not await consumer.poll(0.2)

    began = time.monotonic()
    asyncio.run(story())
    check(requests, began, caplog, tp.topic, 99)


def test_a_producer_of_a_topic_recreated_with_fewer_partitions(
    servers: str, admin: Admin, new_topic: NewTopicName, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(5)
    with Producer(
        bootstrap_servers=servers, linger_ms=0, delivery_timeout_ms=int(SPAN * 1000), request_timeout_ms=1000
    ) as producer:
        producer.send(topic, b"v", partition=4).result(20)
        admin.delete_topics([topic])
        eventually(lambda: topic not in admin.list_topics())
        admin.create_topics([NewTopic(topic, 2)])
        began = time.monotonic()
        future = producer.send(topic, b"v", partition=4)
        assert isinstance(future.exception(20), KafkaTimeoutError)
    check(requests, began, caplog, topic, 4)


def test_a_new_partition_is_used_at_once(
    servers: str, admin: Admin, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    topic = fresh_name()
    admin.create_topics([NewTopic(topic, 1)])
    with Producer(bootstrap_servers=servers, linger_ms=0) as producer, Consumer(bootstrap_servers=servers) as consumer:
        tp = TopicPartition(topic, 1)
        consumer.assign([tp])
        consumer.seek(tp, 0)
        eventually(lambda: consumer.poll(0.05) or f"topic={topic} partition=1 existing=0" in caplog.text)
        admin.create_partitions({topic: 2})
        producer.send(topic, b"v", partition=1).result(20)
        eventually(lambda: [record.value for record in consumer.poll(0.5)] == [b"v"])
