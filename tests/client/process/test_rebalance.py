"""Processors that share topics: records in progress during a rebalance are counted once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ottla
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import consumer_of, ends_of, filled, records_of, running, upper, values_of

PARTITIONS = 4
FOREVER_MS = 60_000
PATIENCE = 60.0
"""Seconds: a machine may be busy with five of these at once, and more."""
QUICK = {"heartbeat_interval_ms": 50, "retry_backoff_ms": 20, "session_timeout_ms": 300_000}
"""A session longer than every timeout here: a member that crashes would block the group."""
WAYS: dict[str, dict[str, Any]] = {
    "range": {**QUICK, "partition_assignment_strategy": "range"},
    "cooperative-sticky": {**QUICK, "partition_assignment_strategy": "cooperative-sticky"},
    "KIP-848": {"group_protocol": "consumer", "retry_backoff_ms": 20},
}


@pytest.fixture
def source(servers: str, new_topic: NewTopicName) -> str:
    """A topic with numbers in each of its partitions."""
    topic = new_topic(PARTITIONS)
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(10 * PARTITIONS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    return topic


@pytest.fixture
def target(new_topic: NewTopicName) -> str:
    return new_topic(PARTITIONS)


def same_place(record: ottla.ConsumerRecord) -> ottla.Outgoing:
    """A copy in the partition of the same number."""
    return ottla.Outgoing(record.value, partition=record.partition)


def in_order(records: list[ottla.ConsumerRecord]) -> dict[int, list[int]]:
    """The numbers of each partition."""
    found: dict[int, list[int]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(int(record.value or b""))
    return found


def all_numbers(count: int) -> dict[int, list[int]]:
    """Return the expected numbers of each partition: each once, in the order of sending."""
    return {place: list(range(place, count, PARTITIONS)) for place in range(PARTITIONS)}


@pytest.mark.parametrize("way", WAYS)
def test_records_of_a_processor_are_committed_before_another_gets_its_partitions(
    servers: str, source: str, target: str, way: str
) -> None:
    reads = WAYS[way]
    seen: list[int] = []

    def noted(record: ottla.ConsumerRecord) -> ottla.Outgoing:
        seen.append(int(record.value or b""))
        return same_place(record)

    how: dict[str, Any] = {"to": target, "reads": reads, "commit_interval_ms": FOREVER_MS}
    with running(servers, source, noted, **how):
        eventually(lambda: len(seen) == 10 * PARTITIONS)
        assert values_of(servers, target) == []
        with running(servers, source, noted, transactional_id=f"{source}-2", **how):
            eventually(lambda: len(values_of(servers, target)) == 10 * PARTITIONS)
    assert in_order(records_of(servers, target)) == all_numbers(10 * PARTITIONS)
    assert len(seen) == 10 * PARTITIONS, "nobody had to do it again"


@pytest.mark.parametrize("way", WAYS)
def test_each_record_is_written_once_and_in_order_while_members_join_and_leave(
    servers: str, source: str, target: str, way: str
) -> None:
    reads = {**WAYS[way], "max_poll_records": 7}
    how: dict[str, Any] = {"to": target, "reads": reads, "commit_interval_ms": 5}

    def member(number: int) -> Any:
        return running(servers, source, same_place, transactional_id=f"{source}-{number}", **how)

    def more_comes_through() -> None:
        done = ends_of(servers, target)
        eventually(lambda: ends_of(servers, target) > done + 2 * PARTITIONS, PATIENCE)

    with feeding(servers, source) as fed, member(0):
        with member(1):
            with member(2):
                more_comes_through()
            more_comes_through()
        more_comes_through()
        fed.set()
        eventually(lambda: len(records_of(servers, target)) >= fed.count, PATIENCE)
    assert in_order(records_of(servers, target)) == all_numbers(fed.count)


class Fed(threading.Event):
    """Set to stop sending."""

    count = 10 * PARTITIONS


@contextmanager
def feeding(servers: str, topic: str) -> Iterator[Fed]:
    """Send consecutive numbers until the event is set."""
    fed = Fed()

    def feed() -> None:
        with ottla.Producer(bootstrap_servers=servers, linger_ms=1) as producer:
            while not fed.wait(0.01):
                for number in range(fed.count, fed.count + PARTITIONS):
                    producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
                fed.count += PARTITIONS

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield fed
    finally:
        fed.set()
        thread.join()


@pytest.mark.parametrize("way", ["range", "KIP-848"])
def test_a_fenced_processor_commits_nothing(servers: str, source: str, target: str, way: str) -> None:
    gone, back = threading.Event(), threading.Event()

    def dawdles(record: ottla.ConsumerRecord) -> ottla.Outgoing:
        gone.set()
        assert back.wait(60)
        return ottla.Outgoing(b"late", partition=record.partition)

    late = {**WAYS[way], "max_poll_interval_ms": 100}
    with running(servers, source, dawdles, to=target, reads=late, commit_interval_ms=0):
        assert gone.wait(60)
        with running(servers, source, same_place, to=target, reads=WAYS[way], transactional_id=f"{source}-2"):
            eventually(lambda: len(values_of(servers, target)) == 10 * PARTITIONS)
            back.set()
    assert in_order(records_of(servers, target)) == all_numbers(10 * PARTITIONS)


def test_at_least_once_members_that_join_and_leave_lose_nothing(servers: str, source: str, target: str) -> None:
    how: dict[str, Any] = {"to": target, "reads": QUICK, "exactly_once": False}
    with running(servers, source, same_place, **how):
        with running(servers, source, same_place, **how):
            eventually(lambda: values_of(servers, target))
        eventually(lambda: len(set(values_of(servers, target))) == 10 * PARTITIONS)
    counts = Counter(values_of(servers, target))
    assert set(counts) == {b"%d" % number for number in range(10 * PARTITIONS)}


def test_processors_of_several_topics_read_all_of_them(servers: str, new_topic: NewTopicName, target: str) -> None:
    one, two = new_topic(), new_topic()
    filled(servers, one, ["a"])
    filled(servers, two, ["b"])
    with running(servers, one, upper, to=target, topics=[one, two]):
        eventually(lambda: sorted(values_of(servers, target)) == [b"A", b"B"])
    with consumer_of(servers, one) as consumer:
        places = [ottla.TopicPartition(topic, 0) for topic in (one, two)]
        assert all(found is not None and found.offset == 1 for found in consumer.committed(places).values())
