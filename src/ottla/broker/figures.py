"""What a broker counts and measures, for whoever comes to read it: names after Kafka's JMX metrics, units in the names.

Taken in the broker's loop at the moment in which somebody asks; only requests are counted as they pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.broker.node import BrokerNode
from ottla.broker.requests.latencies import Latencies
from ottla.broker.requests.request_counts import RequestCounts
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.protocol.apis import APIS

GAUGE, COUNTER = "gauge", "counter"


class Figure(NamedTuple):
    """One metric with all its values."""

    name: str
    """Without `_total`, which whoever writes a counter down adds."""
    kind: str
    meaning: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float]]
    """Values of the labels, and the value."""


class Histogram(NamedTuple):
    """One metric whose values are counted in buckets."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, float]], float]]
    """Values of the labels; up to each bound how many; the sum of all."""


def one(name: str, kind: str, meaning: str, value: float) -> Figure:
    return Figure(name, kind, meaning, (), [((), value)])


def of_broker(
    node: BrokerNode,
    counts: RequestCounts,
    latencies: Latencies,
    connections: Mapping[str, int],
) -> Iterator[Figure | Histogram]:
    """All of a broker's; `connections` by their listener."""
    yield from of_replicas(node)
    yield from of_logs(node)
    pushers = len(node.telemetry.pushed(node.clock.monotonic()))
    yield one("kafka_client_telemetry_instances", GAUGE, "Clients that have pushed metrics and are heard of.", pushers)
    yield Figure(
        "kafka_network_request_metrics_requests",
        COUNTER,
        "Requests that came, by their API.",
        ("request",),
        [((APIS[key].name,), count) for key, count in counts.by_api().items() if key in APIS],
    )
    yield Figure(
        "kafka_network_request_metrics_requests_by_client",
        COUNTER,
        "Requests that came, by the client id; of more than a hundred clients the later ones are told together.",
        ("client_id",),
        [((client,), count) for client, count in counts.by_client()],
    )
    yield Histogram(
        "kafka_network_request_metrics_total_time_seconds",
        "From the arrival of a request to its answer, by API; what a fetch waits for records is in it.",
        ("request",),
        [((APIS[key].name,), *counted) for key, counted in latencies.buckets().items() if key in APIS],
    )
    yield Figure(
        "kafka_server_socket_server_metrics_connection_count",
        GAUGE,
        "Connections of now, by listener.",
        ("listener",),
        [((name,), count) for name, count in connections.items()],
    )
    for name, meaning, counted in node.authentication.counts.named():
        yield Figure(f"kafka_server_socket_server_metrics_{name}", COUNTER, meaning, ("listener",), counted)
    waiting = {each for partition in node.partitions for each in partition.waiting}
    yield one("kafka_server_delayed_fetch_purgatory_size", GAUGE, "Fetches that wait for records.", len(waiting))


def of_replicas(node: BrokerNode) -> Iterator[Figure]:
    """How the copies of this broker are."""
    led = [each for each in node.partitions if each.leads]
    assigned = {
        (topic.name, state.index): len(state.replicas) for topic in node.topics.all() for state in topic.partitions
    }
    behind = [
        each
        for each in led
        if each.replicas_in_sync < assigned.get((each.topic_partition.topic, each.topic_partition.partition), 1)
    ]
    few = [each for each in led if each.replicas_in_sync < each.min_insync_replicas]
    offline = [each for each in node.partitions if each.fault is not None]
    for name, meaning, which in (
        ("partition_count", "Partitions with a copy on this broker.", list(node.partitions)),
        ("leader_count", "Partitions that this broker leads.", led),
        ("under_replicated_partitions", "Led partitions of which a copy is not in sync.", behind),
        ("under_min_isr_partition_count", "Led partitions with fewer in sync than min.insync.replicas.", few),
        ("offline_replica_count", "Partitions that are out of service here, by damage.", offline),
    ):
        yield one(f"kafka_server_replica_manager_{name}", GAUGE, meaning, len(which))
    yield one(
        "kafka_server_topic_count",
        GAUGE,
        "Topics of the cluster, as this broker knows it.",
        len(list(node.topics.all())),
    )


def of_logs(node: BrokerNode) -> Iterator[Figure]:
    """Of each log that is open."""
    logs = sorted(node.directory.open_logs.items())
    for name, meaning, read in (
        ("log_start_offset", "The first offset that is kept.", lambda log: log.start_offset),
        (
            "log_end_offset",
            "The offset of the next record: its rate is that of records coming in.",
            lambda log: log.end_offset,
        ),
        ("log_size_bytes", "What the segments take on the disk.", lambda log: log.size_bytes),
        ("num_log_segments", "Segments.", lambda log: len(log.segments)),
    ):
        samples = [((place.topic, str(place.partition)), float(read(log))) for place, log in logs]
        yield Figure(f"kafka_log_{name}", GAUGE, meaning, ("topic", "partition"), samples)


def of_controller(raft: Raft) -> Iterator[Figure]:
    """How the quorum is, as one of its voters sees it."""
    for name, meaning, value in (
        ("active_controller_count", "1 where this node is the active controller.", int(raft.state is State.LEADER)),
        ("current_leader", "The node that leads the quorum; -1 while nobody is known to.", leader_id(raft)),
        ("current_epoch", "The epoch of the quorum.", raft.epoch),
        ("high_watermark", "Up to where the metadata are committed.", raft.high_watermark),
        ("log_end_offset", "Where this node's log of the metadata ends.", raft.log.end),
        ("voter_count", "Who may vote.", len(raft.voters)),
    ):
        yield one(f"kafka_raft_{name}", GAUGE, meaning, value)


def leader_id(raft: Raft) -> int:
    return -1 if raft.leader_id is None else raft.leader_id
