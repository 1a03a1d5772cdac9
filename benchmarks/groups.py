"""Measure consumer groups: the start of a hundred members, their cost while idle, and commits.

Our broker runs next to Apache Kafka and kfake, with the same clients (librdkafka). All start a rebalance at once
(`group.initial.rebalance.delay.ms=0`). Groups use the classic protocol and KIP-848. The last part measures the delay of
records in a rebalance (`rebalance_delay`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from itertools import count

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import rebalance_delay
from benchmarks.brokers import Running, everybody
from benchmarks.duel import Figures, duel, report
from benchmarks.race import cpu_seconds

MEMBERS, TOPICS, PARTITIONS = 100, 4, 50
IDLE_SECONDS = 5
ROUNDS = 2
COMMITS, ASYNC_COMMITS = 500, 5_000
PATIENCE = 120
AIMS = {
    "start to stable, s": "≤ 1 ×",
    "start to stable, broker CPU s": "≤ 1 ×",
    "one leaves, to stable again, s": "≤ 1 ×",
    "one leaves, broker CPU s": "≤ 1 ×",
    "100 idle members, cores of the broker": "< 0.03",
    "commit, p50 ms": "≤ 1.2 ×",
    "async commits/s": "≥ 1 ×",
}
serial = count()


class Group:
    """Members in one process, each with its own connection."""

    def __init__(self, server: Running, topics: Sequence[str], protocol: str) -> None:
        settings = {
            "bootstrap.servers": server.bootstrap,
            "group.id": f"bench-{next(serial)}",
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "log_level": 2,
        }
        self.members = [ck.Consumer(settings) for _ in range(MEMBERS)]
        for member in self.members:
            member.subscribe(list(topics))

    def settle(self, partitions: int) -> None:
        """Poll until every partition has an owner, and every member agrees."""
        deadline = time.perf_counter() + PATIENCE
        while not self._is_settled(partitions):
            assert time.perf_counter() < deadline, "the group did not settle"
            for member in self.members:
                member.poll(0)
            time.sleep(0.005)

    def leave(self) -> None:
        """Close a member that owns partitions."""
        leaver = next(member for member in self.members if member.assignment())
        self.members.remove(leaver)
        leaver.close()

    def close(self) -> None:
        """Close all members."""
        for member in self.members:
            member.close()

    def _is_settled(self, partitions: int) -> bool:
        owned = [len(member.assignment()) for member in self.members]
        return sum(owned) == partitions and max(owned) - min(owned) <= TOPICS


def topics_on(server: Running) -> list[str]:
    """Create new topics and return their names."""
    names = [f"group-{next(serial)}" for _ in range(TOPICS)]
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        made.result(PATIENCE)
    return names


def rebalances(server: Running, protocol: str) -> Figures:
    """Measure a group of a hundred members: the start, one member that leaves, and idle members."""
    topics = topics_on(server)
    before, clock = cpu_seconds(server.process), time.perf_counter()
    group = Group(server, topics, protocol)
    group.settle(TOPICS * PARTITIONS)
    start, used = time.perf_counter() - clock, cpu_seconds(server.process) - before
    before, clock = cpu_seconds(server.process), time.perf_counter()
    group.leave()
    group.settle(TOPICS * PARTITIONS)
    again, used_again = time.perf_counter() - clock, cpu_seconds(server.process) - before
    before = cpu_seconds(server.process)
    time.sleep(IDLE_SECONDS)
    idle = (cpu_seconds(server.process) - before) / IDLE_SECONDS
    group.close()
    return {
        "start to stable, s": start,
        "start to stable, broker CPU s": used,
        "one leaves, to stable again, s": again,
        "one leaves, broker CPU s": used_again,
        "100 idle members, cores of the broker": idle,
    }


def commits(server: Running) -> Figures:
    """Measure the commits of one member, synchronous and asynchronous."""
    (topic, *_) = topics_on(server)
    answered = 0

    def on_commit(error: object, partitions: object) -> None:
        nonlocal answered
        answered += 1

    settings = {"bootstrap.servers": server.bootstrap, "group.id": f"bench-{next(serial)}", "on_commit": on_commit}
    consumer = ck.Consumer(settings | {"enable.auto.commit": False})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    spans = []
    for number in range(COMMITS):
        clock = time.perf_counter()
        consumer.commit(offsets=[ck.TopicPartition(topic, 0, number)], asynchronous=False)
        spans.append(time.perf_counter() - clock)
    answered = 0
    clock = time.perf_counter()
    for number in range(ASYNC_COMMITS):
        consumer.commit(offsets=[ck.TopicPartition(topic, 0, number)], asynchronous=True)
        if number % 100 == 0:
            consumer.poll(0)
    while answered < ASYNC_COMMITS:
        consumer.poll(0.01)
    rate = ASYNC_COMMITS / (time.perf_counter() - clock)
    consumer.close()
    return {"commit, p50 ms": statistics.median(spans) * 1000, "async commits/s": rate}


def main() -> None:
    with everybody("group.initial.rebalance.delay.ms=0") as servers:
        for server in servers:  # a JVM reaches its full speed only after a while
            commits(server)
        for protocol, name in (("classic", "classic groups"), ("consumer", "groups of KIP-848")):
            lines = duel(servers, partial(rebalances, protocol=protocol), rounds=ROUNDS)
            report(name, servers, [(line, AIMS[line.name]) for line in lines])
        report("offsets", servers, [(line, AIMS[line.name]) for line in duel(servers, commits, rounds=ROUNDS)])
    rebalance_delay.main()


if __name__ == "__main__":
    main()
