"""Two workers share the flights. One of them is killed repeatedly, and each flight is classified once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import NamedTuple

from examples.flights.replay import Record
from examples.process_flights.worker import GROUP
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition

PARTITIONS = 6
TOPICS = ("flights", "departures", "no-flights")
WORKERS = ("anna", "bert")
PORTIONS = 4
"""The number of portions of the flights. A worker is killed in each."""
PATIENCE = 120.0


class Outcome(NamedTuple):
    """The results of the story."""

    counts: Counter[tuple[str, str]]
    """(carrier, class) → departures."""
    letters: int
    kills: int
    seconds: float


def play(flights: Sequence[Record]) -> Outcome:
    """Send the flights, kill workers and count the results. One record is not a flight."""
    begun, kills = time.monotonic(), 0
    with started_broker() as servers, Crew(servers) as crew, Producer(bootstrap_servers=servers) as producer:
        producer.send("flights", b"no flight at all")
        for number in range(PORTIONS):
            first, stop = (len(flights) * each // PORTIONS for each in (number, number + 1))
            for record in flights[first:stop]:
                producer.send("flights", record.value, key=record.key, timestamp=record.timestamp)
            wait_until_done(servers, (first + stop) // 2)
            crew.replace(WORKERS[number % len(WORKERS)])
            kills += 1
        producer.flush()
        wait_until_done(servers, len(flights) + 1)
        return Outcome(counted(servers), len(read(servers, "no-flights")), kills, time.monotonic() - begun)


@contextmanager
def started_broker() -> Iterator[str]:
    """Start a broker with the topics, and yield its address."""
    with (
        TemporaryDirectory(prefix="ottla-process-flights-") as folder,
        Broker(folder, process=True, group_initial_rebalance_delay_ms=0) as broker,
    ):
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            keep = {"retention.ms": "-1"}  # the flights are of 2013
            admin.create_topics([NewTopic(name, PARTITIONS, 1, keep) for name in TOPICS])
        yield broker.bootstrap_servers


class Crew:
    """The workers, each in a process of its own."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._workers = {name: self._started(name) for name in WORKERS}

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers.values():
            worker.terminate()
        for worker in self._workers.values():
            worker.wait()

    def replace(self, name: str) -> None:
        """Kill a worker at any point of its work, and start another."""
        self._workers[name].kill()
        self._workers[name].wait()
        self._workers[name] = self._started(name)

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "examples.process_flights.worker", self._servers, name])


def wait_until_done(servers: str, count: int) -> None:
    """Wait until the workers have committed this number of flights."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    with Consumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False) as consumer:
        while sum(each.offset for each in consumer.committed(partitions("flights")).values() if each) < count:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"the workers were not done with {count} flights within {PATIENCE:g} s")
            pause.wait(0.02)


def counted(servers: str) -> Counter[tuple[str, str]]:
    """Count departures by carrier and class."""
    return Counter((flight["carrier"], flight["departed"]) for flight in map(json.loads, read(servers, "departures")))


def read(servers: str, topic: str) -> list[bytes]:
    """Return all committed values of a topic."""
    with Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        places, values = partitions(topic), list[bytes]()
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            values += [record.value or b"" for record in consumer.poll(timeout=0.2)]
        return values


def partitions(topic: str) -> list[TopicPartition]:
    """Return all partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]
