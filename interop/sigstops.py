"""Counts who is taken for dead though it only stood still: nodes are stopped by SIGSTOP, for less than a session, and go on.

python -m interop.sigstops STOPS [CLUSTERS]

Clusters of three with Kafka's times (sessions of 9 s, a heartbeat every 2 s), stopped side by side, one node of each at a time for up to 6 s.
Who is fenced loses what it leads, and comes back with another epoch: so both are compared at the end.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from typing import Any, NamedTuple

from ottla import Admin, Cluster, NewTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.wire import Wire

TOPIC, PARTITIONS = "watched", 30
MOST_SECONDS = 6.0
TIMES = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}


class Count(NamedTuple):
    """What became of one cluster."""

    stops: int
    elections: int
    """Of partitions' leaders: none is due."""


def leader_epochs(cluster: Cluster) -> dict[int, int]:
    """By the partitions that are led."""
    with Wire(cluster.addresses[1]) as client:
        said: Any = client.ask(MetadataRequest([MetadataRequestTopic(name=TOPIC)], False))
    return {each.partition_index: each.leader_epoch for each in said.topics[0].partitions if each.leader_id >= 0}


def stop_now_and_then(cluster: Cluster, stops: int, chance: random.Random) -> None:
    for _ in range(stops):
        node = chance.choice(cluster.nodes)
        os.kill(cluster.pid(node), signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, MOST_SECONDS))
        os.kill(cluster.pid(node), signal.SIGCONT)
        time.sleep(chance.uniform(0, 1))


def counted(stops: int, chance: random.Random) -> Count:
    """One cluster's."""
    with Cluster(3, **TIMES) as cluster:
        with Admin(cluster.client_settings()) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        while len(before := leader_epochs(cluster)) < PARTITIONS:
            time.sleep(0.1)
        stop_now_and_then(cluster, stops, chance)
        time.sleep(float(TIMES["broker.session.timeout.ms"]) / 1000)
        after = leader_epochs(cluster)
    return Count(stops, sum(after[each] - epoch for each, epoch in before.items()))


def main() -> None:
    stops, clusters = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found: list[Count] = []
    seeds = [random.randrange(1 << 32) for _ in range(clusters)]
    print("seeds", *seeds, flush=True)
    threads = [
        threading.Thread(target=lambda seed=seed: found.append(counted(stops // clusters, random.Random(seed))))
        for seed in seeds
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == clusters, "a cluster ended early; what it said is above"
    print(f"{sum(each.stops for each in found)} stops, {sum(each.elections for each in found)} leaders changed")


if __name__ == "__main__":
    main()
