"""A broker in a separate process that allows short sessions, with topics and members that are polled in turn."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.events import HeartbeatAnswered
from ottla.trace import Trace
from tests.client.conftest import fresh_name

PATIENCE = 40.0
Members = Callable[..., Consumer]


@pytest.fixture(scope="session")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that allows short sessions."""
    path = tmp_path_factory.mktemp("groups")
    quick: dict[str, Any] = {
        "group_min_session_timeout_ms": 100,
        "group_initial_rebalance_delay_ms": 0,
        "group_consumer_heartbeat_interval_ms": 50,
    }
    with Broker(path, process=True, **quick) as broker:
        yield broker


@pytest.fixture(scope="session")
def group_producer(group_broker: Broker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=group_broker.bootstrap_servers, linger_ms=0) as producer:
        yield producer


@pytest.fixture(scope="session")
def group_admin(group_broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=group_broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def shared_topic(group_admin: Admin) -> str:
    """A topic of four partitions."""
    name = fresh_name()
    group_admin.create_topics([NewTopic(name, 4)])
    return name


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def member(group_broker: Broker, group_id: str) -> Iterator[Members]:
    """Create members of one group with short intervals; they are closed at the end."""
    made: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        quick = {
            "bootstrap_servers": group_broker.bootstrap_servers,
            "group_id": group_id,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 10_000,
            "retry_backoff_ms": 20,
        }
        made.append(Consumer(**{**quick, **settings}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(5)


def poll_until(consumers: Iterable[Consumer], condition: Callable[[], object], timeout: float = PATIENCE) -> list[Any]:
    """Poll the consumers in turn until `condition()`; returns the records that came."""
    records: list[Any] = []
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        for consumer in consumers:
            records += consumer.poll(0.02)
    return records


def poll_count(consumer: Consumer, count: int) -> list[Any]:
    """Poll until `count` records have come."""
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came in time"
        records += consumer.poll(0.1)
    return records


def beaten_for(trace: Trace) -> float:
    """The seconds from the first heartbeat that was answered to the last one."""
    moments = [
        moment.at_ms for moment in trace if isinstance(moment.event, HeartbeatAnswered) and not moment.event.error
    ]
    return (moments[-1] - moments[0]) / 1000 if moments else 0.0


def shared(*consumers: Consumer) -> list[int]:
    """Return the number of partitions of each member."""
    return [len(consumer.assignment()) for consumer in consumers]


def partitions(topic: str, count: int = 4) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def fill_topic(producer: Producer, topic: str, count: int, partitions: int = 4) -> None:
    for n in range(count):
        producer.send(topic, b"%d" % n, partition=n % partitions)
    producer.flush(PATIENCE)
