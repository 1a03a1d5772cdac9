"""What a broker counts and measures, for whoever comes to read it: names after Kafka's JMX metrics, units in the names.

Taken in the broker's loop at the moment in which somebody asks; only requests are counted as they pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.broker.node import BrokerNode
from ottla.broker.requests.latencies import Latencies
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.coordination.telemetry.pushed_metrics import PushedMetrics, Value
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
    requests: Mapping[int, int],
    clients: Iterable[tuple[str, int]],
    latencies: Latencies,
    connections: Mapping[str, int],
) -> Iterator[Figure | Histogram]:
    """All of a broker's; `requests` by the key of their API, `clients` by their id, `connections` by their listener."""
    yield from of_replicas(node)
    yield from of_logs(node)
    yield from of_clients(node.telemetry.pushed(node.clock.monotonic()))
    yield Figure(
        "kafka_network_request_metrics_requests",
        COUNTER,
        "Requests that came, by their API.",
        ("request",),
        [((APIS[key].name,), count) for key, count in sorted(requests.items()) if key in APIS],
    )
    yield Figure(
        "kafka_network_request_metrics_requests_by_client",
        COUNTER,
        "Requests that came, by the client id; of more than a hundred clients the later ones are told together.",
        ("client_id",),
        [((client,), count) for client, count in clients],
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


TOLD_BY_CLIENTS = "kafka_client_telemetry_"
KAFKAS = "org.apache.kafka."
"""How the names begin that clients of Kafka give their metrics."""
NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
IDENTIFYING = ("client_instance_id", "client_id")
Labels = dict[str, str]


def of_clients(pushed: PushedMetrics) -> Iterator[Figure]:
    """What clients have pushed of themselves (KIP-714): `org.apache.kafka.producer.record.send.total` is
    `kafka_client_telemetry_producer_record_send_total`, with the attributes as labels.
    """
    yield one(f"{TOLD_BY_CLIENTS}instances", GAUGE, "Clients that have pushed metrics and are heard of.", len(pushed))
    told = sorted(each_told(pushed), key=lambda told: told[0])
    for (name, kind), of_name in groupby(told, key=lambda told: told[0]):
        samples = {tuple(sorted(labels.items())): value.number for _, labels, value in of_name}
        others = sorted({label for labels in samples for label, _ in labels} - {*IDENTIFYING})
        names = (*IDENTIFYING, *others)
        rows = [(tuple(dict(labels).get(each, "") for each in names), number) for labels, number in samples.items()]
        yield Figure(name, kind, "As its clients tell it.", names, rows)


def each_told(pushed: PushedMetrics) -> Iterator[tuple[tuple[str, str], Labels, Value]]:
    """Each number of each client: what it is called here and whether it counts, its labels, the number."""
    for _, pusher in pushed:
        own = dict(zip(IDENTIFYING, pusher.client, strict=False))
        for (name, attributes), value in pusher.values.items():
            labels = {label_of(key): text for key, text in attributes}
            short = NO_NAME.sub("_", name.removeprefix(KAFKAS))
            kind = COUNTER if value.is_sum and short.endswith("_total") else GAUGE
            yield (
                (f"{TOLD_BY_CLIENTS}{short.removesuffix('_total') if kind == COUNTER else short}", kind),
                labels | own,
                value,
            )


def label_of(key: str) -> str:
    """A label's name; those that begin with two underscores are Prometheus' own."""
    short = NO_NAME.sub("_", key).lstrip("_")
    return f"_{short}" if not short or short[0].isdigit() else short


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
