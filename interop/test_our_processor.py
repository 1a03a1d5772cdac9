"""Our processor at Apache Kafka: members that share partitions, are removed by timeout, and are killed.

The same tests for our broker are in `tests/client/process`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from typing import Any

import pytest

import ottla
from tests.client.conftest import eventually
from tests.client.process.running import records_of, running, values_of

PARTITIONS = 4
COUNT = 400
PATIENCE = 60.0


def create_topic(address: str, topic: str) -> str:
    """Create a topic of four partitions."""
    with ottla.Admin(bootstrap_servers=address) as admin:
        admin.create_topics([ottla.NewTopic(topic, PARTITIONS)])
    return topic


@pytest.fixture
def source(apache_kafka: str) -> str:
    """A topic with numbers in each of its partitions."""
    topic = create_topic(apache_kafka, f"source-{uuid.uuid4().hex[:8]}")
    with ottla.Producer(bootstrap_servers=apache_kafka) as producer:
        for number in range(COUNT):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    return topic


@pytest.fixture
def target(apache_kafka: str) -> str:
    return create_topic(apache_kafka, f"target-{uuid.uuid4().hex[:8]}")


def same_place(record: ottla.ConsumerRecord) -> ottla.Outgoing:
    return ottla.Outgoing(record.value, partition=record.partition)


def all_once_and_in_order(records: list[ottla.ConsumerRecord]) -> bool:
    found: dict[int, list[int]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(int(record.value or b""))
    return found == {place: list(range(place, COUNT, PARTITIONS)) for place in range(PARTITIONS)}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_that_join_in_the_middle_of_a_transaction(
    apache_kafka: str, source: str, target: str, strategy: str
) -> None:
    seen: list[int] = []

    def noted(record: ottla.ConsumerRecord) -> ottla.Outgoing:
        seen.append(int(record.value or b""))
        return same_place(record)

    reads = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": 100}
    how: dict[str, Any] = {"to": target, "reads": reads, "commit_interval_ms": 600_000}
    with running(apache_kafka, source, noted, **how):
        eventually(lambda: len(seen) == COUNT, PATIENCE)
        assert values_of(apache_kafka, target) == []
        with running(apache_kafka, source, noted, transactional_id=f"{source}-2", **how):
            eventually(lambda: len(values_of(apache_kafka, target)) == COUNT, PATIENCE)
    assert all_once_and_in_order(records_of(apache_kafka, target))
    assert len(seen) == COUNT


def test_a_removed_member_commits_nothing(apache_kafka: str, source: str, target: str) -> None:
    gone, back = threading.Event(), threading.Event()

    def dawdles(record: ottla.ConsumerRecord) -> ottla.Outgoing:
        gone.set()
        assert back.wait(PATIENCE)
        return ottla.Outgoing(b"-1", partition=record.partition)

    late = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 100, "max_poll_interval_ms": 1000}
    with running(apache_kafka, source, dawdles, to=target, reads=late, commit_interval_ms=0):
        assert gone.wait(PATIENCE)
        with running(apache_kafka, source, same_place, to=target, transactional_id=f"{source}-2"):
            eventually(lambda: len(values_of(apache_kafka, target)) == COUNT, PATIENCE)
            back.set()
    assert all_once_and_in_order(records_of(apache_kafka, target))


def test_a_processor_that_is_killed_is_replaced(apache_kafka: str) -> None:
    for topic in ("in", "out"):
        with ottla.Admin(bootstrap_servers=apache_kafka) as admin:
            admin.create_topics([ottla.NewTopic(topic, 1)])
    with ottla.Producer(bootstrap_servers=apache_kafka) as producer:
        for number in range(COUNT):
            producer.send("in", b"%d" % number)
    for turn in range(1, 4):
        command = [sys.executable, "-m", "tests.client.process.worker", apache_kafka, "plain", "0"]
        path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=path) as worker:
            eventually(lambda turn=turn: len(values_of(apache_kafka, "out")) >= turn * COUNT // 3, PATIENCE)  # type: ignore[misc]
            worker.kill()
    assert values_of(apache_kafka, "out") == [b"%d" % number for number in range(COUNT)]
