"""Count the nodes that are fenced although they were only paused with SIGSTOP, for less than a session.

python -m interop.sigstops STOPS [CLUSTERS]

Clusters of three run in parallel with Kafka's times (sessions of 9 s, a heartbeat every 2 s). In each cluster, one node
at a time is stopped for up to 6 s. A node is not stopped again before it has run for a moment, because two stops
without a pause between them act as one longer stop. The number of fenced brokers is read from the metadata log.
A change of leader without fencing is counted separately.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ottla import Admin, Cluster, NewTopic
from ottla.broker.controller.active_controller import records_in
from ottla.coordination.cluster.node_records import BrokerRegistrationChangeRecord
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.schema import Message
from ottla.records.batch import iter_headers
from tests.broker.wire import Wire

TOPIC, PARTITIONS = "watched", 30
MOST_SECONDS = 6.0
AWAKE_SECONDS = 0.25
"""The minimum time between two stops of a node."""
TIMES = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}
FENCED = 1


class Count(NamedTuple):
    """The results of one cluster."""

    stops: int
    fencings: int
    """The expected value is 0."""
    elections: int
    """Changes of partition leaders."""


def leader_epochs(cluster: Cluster) -> dict[int, int]:
    """Return the leader epoch of each partition that has a leader."""
    with Wire(cluster.addresses[1]) as client:
        said: Any = client.ask(MetadataRequest([MetadataRequestTopic(name=TOPIC)], False))
    return {each.partition_index: each.leader_epoch for each in said.topics[0].partitions if each.leader_id >= 0}


def records_of(folder: Path) -> Iterator[Message]:
    """Yield the metadata log records of a node while the node continues to write."""
    for log in sorted((folder / "__cluster_metadata-0").glob("*.log")):
        data = log.read_bytes()
        for position, header in iter_headers(data):
            if not header.is_control:
                yield from (record for _, record in records_in(data[position : position + header.size_bytes]))


def fencings(folder: Path, cluster: Cluster) -> int:
    """Return the number of fencings in the metadata log, after the last change has reached the nodes."""
    return max(
        sum(isinstance(each, BrokerRegistrationChangeRecord) and each.fenced == FENCED for each in records_of(node))
        for node in (folder / f"node-{number}" for number in cluster.nodes)
    )


def stop_now_and_then(cluster: Cluster, stops: int, chance: random.Random) -> None:
    awake_since: dict[int, float] = {}
    for _ in range(stops):
        node = chance.choice(cluster.nodes)
        time.sleep(max(0.0, awake_since.get(node, 0.0) + AWAKE_SECONDS - time.monotonic()))
        os.kill(cluster.pid(node), signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, MOST_SECONDS))
        os.kill(cluster.pid(node), signal.SIGCONT)
        awake_since[node] = time.monotonic()
        time.sleep(chance.uniform(0, 1))


def counted(stops: int, chance: random.Random) -> Count:
    """Run one cluster and return its results."""
    with tempfile.TemporaryDirectory() as folder, Cluster(3, data_dir=folder, **TIMES) as cluster:
        with Admin(cluster.client_settings()) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        while len(before := leader_epochs(cluster)) < PARTITIONS:
            time.sleep(0.1)
        stop_now_and_then(cluster, stops, chance)
        time.sleep(float(TIMES["broker.session.timeout.ms"]) / 1000)
        after = leader_epochs(cluster)
        fenced = fencings(Path(folder), cluster)
    return Count(stops, fenced, sum(after[each] - epoch for each, epoch in before.items()))


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
    total = Count(*map(sum, zip(*found, strict=True)))
    print(f"{total.stops} stops, {total.fencings} brokers fenced, {total.elections} leaders changed")


if __name__ == "__main__":
    main()
