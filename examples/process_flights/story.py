"""Two workers share the flights, one of them is killed again and again, and each flight is classified once."""

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
"""The flights come in so many portions; in each of them a worker is killed."""
PATIENCE = 120.0


class Outcome(NamedTuple):
    """What came of it."""

    counts: Counter[tuple[str, str]]
    """(carrier, class) → departures."""
    letters: int
    kills: int
    seconds: float


def play(flights: Sequence[Record]) -> Outcome:
    """Feed, kill, count; one record among them is no flight."""
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
    """A broker with the topics; yields its address."""
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
        """Kill a worker in the middle of whatever it does; another takes its place."""
        self._workers[name].kill()
        self._workers[name].wait()
        self._workers[name] = self._started(name)

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "examples.process_flights.worker", self._servers, name])


def wait_until_done(servers: str, count: int) -> None:
    """Until the workers have committed that they are done with so many flights."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    with Consumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False) as consumer:
        while sum(each.offset for each in consumer.committed(partitions("flights")).values() if each) < count:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"the workers were not done with {count} flights within {PATIENCE:g} s")
            pause.wait(0.02)


def counted(servers: str) -> Counter[tuple[str, str]]:
    """Departures by carrier and class."""
    return Counter((flight["carrier"], flight["departed"]) for flight in map(json.loads, read(servers, "departures")))


def read(servers: str, topic: str) -> list[bytes]:
    """All committed values of a topic."""
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
    """All of a topic's."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]
