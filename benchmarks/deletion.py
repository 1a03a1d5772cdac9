"""Measure the delay of other requests while a topic is deleted: the slowest ApiVersions, next to kfake and Apache
Kafka.

There are a topic of 3 GB, and one of 1,000 partitions with records in each. Requests are sent continuously until the
files are deleted, and for one second more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import count

from benchmarks.brokers import Running, everybody
from benchmarks.duel import Figures, Line, duel, report
from benchmarks.librdkafka import fill
from benchmarks.small_requests import is_error
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.wire import Wire, batch

LARGE_RECORDS, SIZE = 3_000_000, 1024
MANY = 1_000
AT_ONCE = 50
"""The number of partitions in one produce request."""
AFTERWARDS = 2.0
"""The maximum time in seconds until the files are deleted, during which requests are sent."""
SECONDS = 120.0
VERSION = 11
AIMS = ("≤ 15", "", "≤ 15", "")
serial = count()


def large(server: Running) -> str:
    """Create a topic of 3 GB in one partition."""
    name = f"deleted-{next(serial)}"
    with Wire(server.bootstrap) as wire:
        wire.create(name, 1)
        led(wire, name, [0])
    fill(server, name, SIZE, LARGE_RECORDS)
    return name


def many(server: Running) -> str:
    """Create a topic of 1,000 partitions with a record in each."""
    name = f"deleted-{next(serial)}"
    with Wire(server.bootstrap) as wire:
        wire.socket.settimeout(SECONDS)
        wire.create(name, MANY)
        for first in range(0, MANY, AT_ONCE):
            led(wire, name, range(first, first + AT_ONCE))
    return name


def led(wire: Wire, name: str, partitions: Sequence[int]) -> None:
    """Write a record to each of some partitions, and retry while a partition has no leader."""
    deadline = time.perf_counter() + SECONDS
    data = [PartitionProduceData(number, batch([bytes(100)])) for number in partitions]
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(name, partition_data=data)])
    while is_error(wire.receive_frame_of(request, VERSION)):
        assert time.perf_counter() < deadline, "the partitions take no records"
        time.sleep(0.05)


def measure_longest_waits(server: Running) -> Figures:
    """Return the milliseconds for both topics."""
    found = {}
    for what, make in (("3 GB", large), (f"{MANY:,} partitions", many)):
        longest, answered = longest_answer(server, make(server))
        found[f"{what}: longest answer, ms"] = longest
        found[f"{what}: the deletion's own, ms"] = answered
    return found


def longest_answer(server: Running, topic: str) -> tuple[float, float]:
    """Return the longest wait of one connection during a deletion by another, and the duration of that deletion."""
    deleted = threading.Event()
    spans: list[float] = []

    def ask() -> None:
        until = float("inf")
        with Wire(server.bootstrap) as wire:
            while time.perf_counter() < until:
                clock = time.perf_counter()
                wire.receive_frame_of(ApiVersionsRequest("bench", "1"), 3)
                spans.append(time.perf_counter() - clock)
                time.sleep(0.0005)
                if until == float("inf") and deleted.is_set():
                    until = time.perf_counter() + AFTERWARDS

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.1)
    took = timed(lambda: delete(server, topic))
    deleted.set()
    asking.join()
    return max(spans) * 1000, took * 1000


def delete(server: Running, topic: str) -> None:
    """Send a DeleteTopics request, and wait for the response."""
    with Wire(server.bootstrap) as wire:
        wire.socket.settimeout(SECONDS)
        response = wire.ask(DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=60_000), 6)
        assert not any(each.error_code for each in response.responses), response


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that the call takes."""
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def lines(servers: Sequence[Running]) -> list[tuple[Line, str]]:
    """Measure all figures."""
    return list(zip(duel(servers, measure_longest_waits), AIMS, strict=True))


def main() -> None:
    with everybody() as servers:
        report("while a topic is deleted", servers, lines(servers))


if __name__ == "__main__":
    main()
