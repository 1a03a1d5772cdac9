"""Measure the throughput of a broker: MB/s, and processor time per gigabyte.

Ours runs next to Apache Kafka (if `make interop` has fetched its jars) and kfake (if Go is installed). The clients are
the same on all sides: librdkafka in C, and Kafka's ProducerPerformance in Java. If the client was the limit, compare
the processor time of the servers. Before the measurement, each server receives and sends 2 GB, which warms up a JVM.
Afterwards the files of each server are in memory that the host has already allocated. So no server pays for fresh
memory of a virtual machine, which costs more than everything else.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.brokers import Running, everybody
from benchmarks.confluent import new_topic
from benchmarks.duel import Figures, Line, duel, metered, report
from benchmarks.librdkafka import consume, fill
from rivals.apache_kafka import fetched, java

SIZES = {100: 2_000_000, 1024: 600_000}
"""The size of a value in bytes, and the number of records in one turn."""
JAVA_RECORDS = 2_000_000
AIMS = {
    "produce 100 B": ("≥ 1.5", "≤ 0.5"),
    "produce 1024 B": ("≥ 1.5", "≤ 0.5"),
    "consume 100 B": ("≥ 1", "≤ 0.5"),
    "consume 1024 B": ("≥ 1.3", "≤ 0.5"),
    "produce 100 B by Java": ("≥ 1.2", "≤ 0.25"),
}
JAVA_LINE = re.compile(r"([\d.]+) records/sec")


def produced(server: Running, size: int, records: int) -> Figures:
    """Fill a new topic with librdkafka."""
    topic = new_topic(server)
    return metered(server, size * records / 1e6, lambda: seconds(lambda: fill(server, topic, size, records)))


def consumed(server: Running, topics: Mapping[Running, str], size: int, records: int) -> Figures:
    """Read a topic from the page cache with librdkafka."""
    return metered(server, size * records / 1e6, lambda: seconds(lambda: consume(server, topics[server], records)))


def produced_by_java(server: Running) -> Figures:
    """Fill a new topic with ProducerPerformance. Its own clock is used, so the start of the JVM is not counted."""
    topic = new_topic(server)
    return metered(server, 100 * JAVA_RECORDS / 1e6, lambda: java_seconds(server, topic))


def java_seconds(server: Running, topic: str) -> float:
    """Return the duration that ProducerPerformance reports."""
    properties = (f"bootstrap.servers={server.bootstrap}", "acks=all", "batch.size=131072", "linger.ms=5")
    size = ("--record-size", "100", "--num-records", str(JAVA_RECORDS), "--throughput", "-1")
    command = java(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, *size, "--producer-props", *properties
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return JAVA_RECORDS / float(JAVA_LINE.findall(done.stdout)[-1])


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def lines(servers: Sequence[Running]) -> list[tuple[Line, str]]:
    """Measure all figures."""
    found: list[tuple[Line, str]] = []
    for size, records in SIZES.items():
        filled = {server: new_topic(server) for server in servers}
        for server, topic in filled.items():
            fill(server, topic, size, records)
        found += aimed(f"produce {size} B", duel(servers, partial(produced, size=size, records=records)))
        found += aimed(f"consume {size} B", duel(servers, partial(consumed, topics=filled, size=size, records=records)))
    if fetched():
        found += aimed("produce 100 B by Java", duel(servers, produced_by_java))
    return found


def aimed(title: str, of: Sequence[Line]) -> list[tuple[Line, str]]:
    """Lines with their aims, named for what was done."""
    return aimed_at(title, of, AIMS[title])


def aimed_at(title: str, of: Sequence[Line], aims: Sequence[str]) -> list[tuple[Line, str]]:
    """The same with aims of one's own."""
    return [(each._replace(name=f"{title}, {each.name}"), aim) for each, aim in zip(of, aims, strict=True)]


def warm_up(server: Running) -> None:
    """Write and read 2 GB: a JVM reaches its full speed only then."""
    topic = new_topic(server)
    fill(server, topic, 1024, 2_000_000)
    consume(server, topic, 2_000_000)


def main() -> None:
    with everybody() as servers:
        for server in servers:
            warm_up(server)
        report("through a broker", servers, lines(servers))


if __name__ == "__main__":
    main()
