"""Measure three nodes with thousands of partitions: elections after a node is killed, its restart, and its shutdown.

Ours and Apache Kafka's run in turns, as in `three_nodes`. Each topic has three replicas. A producer writes to one
partition of each of `WRITTEN` topics while a node is shut down, and none of its sends may fail.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from threading import Event, Thread

from benchmarks.brokers import Running
from benchmarks.duel import Figures, line, report
from benchmarks.race import resident_bytes
from benchmarks.three_nodes import MAKERS, ROUNDS, Three, active, succeeds, until
from ottla import Admin, NewTopic, Producer
from ottla.client.producer import RecordFuture
from rivals import apache_kafka as rival

TOPICS = int(os.environ.get("TOPICS", "1000"))
PARTITIONS = int(os.environ.get("PARTITIONS", "10000"))
BIG_TOPICS = 10
WRITTEN = 20
AT_ONCE = 5_000
"""The number of partitions in one request. Apache Kafka rejects more than 10,000."""
NODES = (1, 2, 3)


def figures(make: Callable[[], Three]) -> Figures:
    """Measure all figures of one cluster."""
    with make() as three, Admin(bootstrap_servers=three.bootstrap_servers, request_timeout_ms=120_000) as admin:
        small = [f"small-{number}" for number in range(TOPICS)]
        found = {f"create {TOPICS:,} topics until all are led, s": span_to_create(admin, small, 1)}
        found[f"controlled shutdown with {TOPICS // 3:,} led, s"], failed = shut_down(three, admin, small)
        found["sends that failed meanwhile"] = float(failed)
        big = [f"big-{number}" for number in range(BIG_TOPICS)]
        name = f"create {PARTITIONS:,} partitions until all are led, s"
        found[name] = span_to_create(admin, big, PARTITIONS // BIG_TOPICS)
        found["memory of all three then, MB"] = sum(resident_bytes(three.pid(each)) for each in NODES) / 1e6
        victim = next(each for each in NODES if each != active(admin))
        name = f"kill −9 of who leads {(TOPICS + PARTITIONS) // 3:,} → all are led, s"
        found[name] = after_kill(three, victim, [*small, *big])
        clock = time.perf_counter()
        three.start(victim)
        all_in_sync(admin, [*small, *big])
        return found | {"its start → all are in sync again, s": time.perf_counter() - clock}


def span_to_create(admin: Admin, names: list[str], partitions: int) -> float:
    clock = time.perf_counter()
    together = min(100, AT_ONCE // partitions)
    for at in range(0, len(names), together):
        admin.create_topics([NewTopic(name, partitions, 3) for name in names[at : at + together]], timeout=120)
    all_in_sync(admin, names)
    return time.perf_counter() - clock


def all_in_sync(admin: Admin, names: list[str]) -> None:
    until(lambda: succeeds(lambda: admin.describe_topics(names)) and fewest_in_sync(admin, names) == 3, "all in sync")


def fewest_in_sync(admin: Admin, names: Iterable[str]) -> int:
    """Return the smallest ISR size. A partition without a leader counts as 0."""
    found = admin.describe_topics(names).values()
    return min(len(each.in_sync_replicas) * (each.leader >= 0) for topic in found for each in topic.partitions)


def after_kill(three: Three, victim: int, names: list[str]) -> float:
    places = three.bootstrap_servers.split(",")
    others = ",".join(place for node, place in zip(NODES, places, strict=True) if node != victim)
    clock = time.perf_counter()
    three.kill(victim)
    with Admin(bootstrap_servers=others, request_timeout_ms=120_000) as admin:
        until(
            lambda: succeeds(lambda: leaders(admin, names)) and not leaders(admin, names) & {-1, victim}, "all are led"
        )
    return time.perf_counter() - clock


def leaders(admin: Admin, names: list[str]) -> set[int]:
    return {each.leader for topic in admin.describe_topics(names).values() for each in topic.partitions}


def shut_down(three: Three, admin: Admin, names: list[str]) -> tuple[float, int]:
    """Return the seconds from SIGTERM to the end of the process, and the number of failed sends."""
    victim = next(each for each in NODES if each != active(admin))
    sent: list[RecordFuture] = []
    enough = Event()
    with Producer(bootstrap_servers=three.bootstrap_servers, acks="all", enable_idempotence=True) as producer:

        def write() -> None:
            while not enough.wait(0.002):
                sent.append(producer.send(names[len(sent) % WRITTEN], b"x" * 100))

        writer = Thread(target=write)
        writer.start()
        until(lambda: len(sent) > 5 * WRITTEN and sent[-2 * WRITTEN].done(), "it writes")
        clock, process = time.perf_counter(), three.pid(victim)
        os.kill(process, signal.SIGTERM)
        until(lambda: has_ended(process), f"node {victim} ends")
        span = time.perf_counter() - clock
        enough.set()
        writer.join()
        producer.flush()
    three.start(victim)
    all_in_sync(admin, names)
    return span, sum(each.exception() is not None for each in sent)


def has_ended(process: int) -> bool:
    """True if the process has ended with all of its threads, even if its parent has not reaped it."""
    try:
        with open(f"/proc/{process}/stat") as status:
            ended = status.read().rpartition(")")[2].split()[0] == "Z"
        return ended and len(os.listdir(f"/proc/{process}/task")) == 1
    except FileNotFoundError:
        return True


AIMS = {
    f"create {TOPICS:,} topics until all are led, s": "≤ Kafka's",
    f"controlled shutdown with {TOPICS // 3:,} led, s": "≤ 1 s with 1,000",
    "sends that failed meanwhile": "0",
    f"create {PARTITIONS:,} partitions until all are led, s": "≤ Kafka's",
    "memory of all three then, MB": "",
    f"kill −9 of who leads {(TOPICS + PARTITIONS) // 3:,} → all are led, s": "≤ Kafka's",
    "its start → all are in sync again, s": "",
}


def main() -> None:
    rival.fetch()
    results: list[list[Figures]] = [[], []]
    for _ in range(ROUNDS):
        for make, found in zip(MAKERS, results, strict=True):
            found.append(figures(make))
            print(found[-1], flush=True)
    names = [Running(name, "", 0) for name in ("Ottla", "Apache Kafka")]
    report("Three nodes with many partitions", names, [(line(name, results), aim) for name, aim in AIMS.items()])


if __name__ == "__main__":
    main()
