"""Measure transactions of 1, 10 and 1,000 records: their number per second, and p99 of their commit.

Our broker runs next to Apache Kafka and kfake. The clients are the same on all sides: ours and confluent-kafka.
Transactions run one after the other, with records of 100 bytes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import confluent_kafka as ck

from benchmarks.brokers import Running, everybody
from benchmarks.confluent import new_topic
from benchmarks.duel import Figures, Line, duel, report
from benchmarks.race import cpu_seconds
from ottla import Producer

SIZES = {1: 600, 10: 600, 1000: 200}
"""The number of records in a transaction, and of transactions in one turn."""
WARM = 50
"""The number of transactions at the start of a turn that are not counted."""
HEAT = 2
"""The number of warm-up turns of each kind, in which a JVM reaches its full speed."""
VALUE = bytes(100)
Commits = list[float]
Client = Callable[[Running, str, int, int], Commits]


def by_ottla(server: Running, topic: str, size: int, count: int) -> Commits:
    """Return the seconds of each commit with our producer."""
    with Producer(bootstrap_servers=server.bootstrap, transactional_id=uuid4().hex) as producer:
        producer.init_transactions()
        return timed(producer, lambda: producer.send(topic, VALUE), size, count)


def by_confluent(server: Running, topic: str, size: int, count: int) -> Commits:
    """Return the seconds of each commit with confluent-kafka's producer."""
    producer = ck.Producer({"bootstrap.servers": server.bootstrap, "transactional.id": uuid4().hex, "log_level": 3})
    producer.init_transactions()
    return timed(producer, lambda: producer.produce(topic, VALUE), size, count)


def timed(producer: Any, send: Callable[[], object], size: int, count: int) -> Commits:
    """Return the seconds of each commit."""
    spans: Commits = []
    for _ in range(count):
        producer.begin_transaction()
        for _ in range(size):
            send()
        begun = time.perf_counter()
        producer.commit_transaction()
        spans.append(time.perf_counter() - begun)
    return spans


def measured(server: Running, client: Client, size: int, count: int) -> Figures:
    """Measure one turn."""
    topic = new_topic(server)
    client(server, topic, size, WARM)
    used, begun = cpu_seconds(server.process), time.perf_counter()
    spans = client(server, topic, size, count)
    span = time.perf_counter() - begun
    return {
        "transactions/s": count / span,
        "p99 of commit, ms": statistics.quantiles(spans, n=100)[98] * 1000,
        "server CPU ms each": (cpu_seconds(server.process) - used) / count * 1000,
    }


CLIENTS: dict[str, Client] = {"ottla": by_ottla, "confluent-kafka": by_confluent}
AIMS = ("≥ 1", "≤ 1", "≤ 1")


def lines(servers: list[Running]) -> list[tuple[Line, str]]:
    """Measure all figures."""
    found: list[tuple[Line, str]] = []
    for name, client in CLIENTS.items():
        for size, count in SIZES.items():
            figures = duel(servers, partial(measured, client=client, size=size, count=count))
            titles = (f"{name}, {size} records, {line.name}" for line in figures)
            found += [(line._replace(name=title), aim) for line, title, aim in zip(figures, titles, AIMS, strict=True)]
    return found


def main() -> None:
    with everybody() as servers:
        for server in servers:
            for client in CLIENTS.values():
                for size, count in SIZES.items():
                    for _ in range(HEAT):
                        measured(server, client, size, count)
        report("transactions, one after the other", servers, lines(servers))


if __name__ == "__main__":
    main()
