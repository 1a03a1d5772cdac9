"""Measure the shutdown of a node that leads a thousand partitions during writes: its duration, and the failed sends.

    python -m benchmarks.leaving                     # ours and Apache Kafka's in turns
    ROUNDS=9 KAFKA=no python -m benchmarks.leaving   # ours alone

This is the shutdown part of `three_crowded`, repeated several times per cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.brokers import Running
from benchmarks.duel import Figures, line, report
from benchmarks.three_crowded import shut_down, span_to_create
from benchmarks.three_nodes import MAKERS, ROUNDS, Three
from ottla import Admin
from rivals import apache_kafka as rival

TOPICS = int(os.environ.get("TOPICS", "3000"))
"""The number of topics with one partition each; a node leads a third of them."""
KAFKA = os.environ.get("KAFKA", "yes") != "no"
AIMS = {"SIGTERM → its process has ended, s": "≤ 1 s", "sends that failed meanwhile": "0"}


def figures(make: Callable[[], Three]) -> list[Figures]:
    """Return the figures of one cluster, for each shutdown of a node."""
    with make() as three, Admin(bootstrap_servers=three.bootstrap_servers, request_timeout_ms=120_000) as admin:
        names = [f"topic-{number}" for number in range(TOPICS)]
        span_to_create(admin, names, 1)
        found: list[Figures] = []
        for _ in range(ROUNDS):
            found.append(dict(zip(AIMS, map(float, shut_down(three, admin, names)), strict=True)))
            print(found[-1], flush=True)
        return found


def main() -> None:
    if KAFKA:
        rival.fetch()
    results = [figures(make) for make in (MAKERS if KAFKA else MAKERS[:1])]
    if KAFKA:
        names = [Running(name, "", 0) for name in ("Ottla", "Apache Kafka")]
        title = f"A node that leads {TOPICS // 3:,} leaves"
        report(title, names, [(line(name, results), aim) for name, aim in AIMS.items()])


if __name__ == "__main__":
    main()
