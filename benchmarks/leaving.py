"""A node that leads a thousand partitions is told to stop while others write: until its process has ended, and how many sends failed.

    python -m benchmarks.leaving                     # ours and Apache Kafka's in turns
    ROUNDS=9 KAFKA=no python -m benchmarks.leaving   # ours alone

Of `three_crowded` this is the part that is about leaving, several times in the life of each cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.brokers import Running
from benchmarks.duel import Figures, line, report
from benchmarks.three_crowded import sent_home, span_to_create
from benchmarks.three_nodes import MAKERS, ROUNDS, Three
from ottla import Admin
from rivals import apache_kafka as rival

TOPICS = int(os.environ.get("TOPICS", "3000"))
"""Each of one partition; a node leads a third of them."""
KAFKA = os.environ.get("KAFKA", "yes") != "no"
AIMS = {"SIGTERM → its process has ended, s": "≤ 1 s", "sends that failed meanwhile": "0"}


def figures(make: Callable[[], Three]) -> list[Figures]:
    """One cluster's, for each time that a node leaves."""
    with make() as three, Admin(bootstrap_servers=three.bootstrap_servers, request_timeout_ms=120_000) as admin:
        names = [f"topic-{number}" for number in range(TOPICS)]
        span_to_create(admin, names, 1)
        found: list[Figures] = []
        for _ in range(ROUNDS):
            found.append(dict(zip(AIMS, map(float, sent_home(three, admin, names)), strict=True)))
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
