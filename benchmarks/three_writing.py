"""Measure the throughput of three combined nodes with `acks=all` and `min.insync.replicas=2`, and their processor
time.

Ours and Apache Kafka's run in turns, both during the whole run, as in `three_nodes`. librdkafka writes to one partition
of three replicas. `python -m benchmarks.three_writing`; ROUNDS=3 by default.
"""

from __future__ import annotations

import time

from benchmarks.brokers import Running
from benchmarks.confluent import PRODUCER
from benchmarks.duel import Figures, duel, report
from benchmarks.librdkafka import fill
from benchmarks.race import cpu_seconds
from benchmarks.three_nodes import MAKERS, ROUNDS, Three, new_topic
from ottla import Admin
from rivals import apache_kafka as rival

SIZES = {100: 1_000_000, 1024: 300_000}
"""The size of a value in bytes, and the number of records in one turn."""
WARM_RECORDS = 200_000
NODES = (1, 2, 3)
AIMS = {"MB/s": "≥ 1 ×", "CPU s/GB of all three": "≤ 1/2 ×"}


def written(three: Three, server: Running, size: int, records: int) -> Figures:
    """Fill a new topic."""
    with Admin(bootstrap_servers=three.bootstrap_servers) as admin:
        topic = new_topic(admin)
    before, begun = used(three), time.perf_counter()
    fill(server, topic, size, records, {**PRODUCER, "acks": "all"})
    span, megabytes = time.perf_counter() - begun, size * records / 1e6
    return {"MB/s": megabytes / span, "CPU s/GB of all three": (used(three) - before) / megabytes * 1000}


def used(three: Three) -> float:
    return sum(cpu_seconds(three.pid(each)) for each in NODES)


def main() -> None:
    rival.fetch()
    ours, theirs = (make() for make in MAKERS)
    with ours, theirs:
        clusters = {
            Running(name, three.bootstrap_servers, three.pid(1)): three
            for name, three in (("Ottla", ours), ("Apache Kafka", theirs))
        }
        for server, three in clusters.items():
            written(three, server, 100, WARM_RECORDS)
        for size, records in SIZES.items():
            lines = duel(
                list(clusters),
                lambda server, size=size, records=records: written(clusters[server], server, size, records),  # type: ignore[misc]
                rounds=ROUNDS,
            )
            report(f"three nodes, {size} B, acks=all", list(clusters), [(each, AIMS[each.name]) for each in lines])


if __name__ == "__main__":
    main()
