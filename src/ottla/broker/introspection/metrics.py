"""The metrics of a broker. Names follow Kafka's JMX metrics, with units in the names.

They are collected in the broker's loop when they are requested. Only requests are counted as they occur.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

from ottla.broker.network_server.request_counts import RequestCounts
from ottla.broker.network_server.request_latencies import Latencies
from ottla.broker.node import BrokerNode
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.errors import name_of
from ottla.protocol.apis import APIS

GAUGE, COUNTER = "gauge", "counter"


class Figure(NamedTuple):
    """One metric with all its values."""

    name: str
    """The name without `_total`, which the output of a counter adds."""
    kind: str
    meaning: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float]]
    """Values of the labels, and the value."""


class Histogram(NamedTuple):
    """A metric with values counted in buckets."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, float]], float]]
    """Values of the labels, the count up to each bound, and the sum."""


def make_figure(name: str, kind: str, meaning: str, value: float) -> Figure:
    return Figure(name, kind, meaning, (), [((), value)])


def list_broker_figures(
    node: BrokerNode,
    counts: RequestCounts,
    latencies: Latencies,
    connections: Mapping[str, int],
) -> Iterator[Figure | Histogram]:
    """Yield the metrics of a broker; `connections` are counted by listener."""
    yield from list_replica_figures(node)
    yield from list_log_figures(node)
    yield from list_disk_figures(node)
    yield from list_group_figures(node)
    yield from list_share_figures(node)
    pushers = len(node.telemetry.list_metrics(node.clock.monotonic()))
    yield make_figure("kafka_client_telemetry_instances", GAUGE, "Clients that push metrics.", pushers)
    yield Figure(
        "kafka_network_request_metrics_requests",
        COUNTER,
        "Requests received, by API.",
        ("request",),
        [((APIS[key].name,), count) for key, count in counts.by_api().items() if key in APIS],
    )
    yield Figure(
        "kafka_network_request_metrics_requests_by_client",
        COUNTER,
        "Requests received, by client id; clients beyond the first hundred are counted together.",
        ("client_id",),
        [((client,), count) for client, count in counts.by_client()],
    )
    yield Figure(
        "kafka_network_request_metrics_errors",
        COUNTER,
        "Errors in responses, by API and error code; a response may have several.",
        ("request", "error"),
        [((APIS[key].name, name_of(code)), count) for (key, code), count in counts.errors().items() if key in APIS],
    )
    yield Histogram(
        "kafka_network_request_metrics_total_time_seconds",
        "Time from the arrival of a request to its response, by API, including the wait of a fetch for records.",
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
    for name, meaning, counted in node.authentication.counts.list_counts():
        yield Figure(f"kafka_server_socket_server_metrics_{name}", COUNTER, meaning, ("listener",), counted)
    waiting = {each for partition in node.partitions for each in partition.waiting}
    yield make_figure(
        "kafka_server_delayed_fetch_purgatory_size", GAUGE, "Fetches that wait for records.", len(waiting)
    )


def list_replica_figures(node: BrokerNode) -> Iterator[Figure]:
    """Yield the metrics of replicas."""
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
        ("partition_count", "Partitions with a replica on this broker.", list(node.partitions)),
        ("leader_count", "Partitions that this broker leads.", led),
        ("under_replicated_partitions", "Led partitions with a replica outside of the ISR.", behind),
        ("under_min_isr_partition_count", "Led partitions with fewer in sync than min.insync.replicas.", few),
        ("offline_replica_count", "Replicas that are out of service on this broker.", offline),
    ):
        yield make_figure(f"kafka_server_replica_manager_{name}", GAUGE, meaning, len(which))
    yield make_figure(
        "kafka_server_topic_count",
        GAUGE,
        "Topics of the cluster, as this broker knows it.",
        len(list(node.topics.all())),
    )


def list_log_figures(node: BrokerNode) -> Iterator[Figure]:
    """Yield the metrics of each open log."""
    logs = sorted(node.directory.open_logs.items())
    for name, meaning, read in (
        ("log_start_offset", "The first offset of the log.", lambda log: log.start_offset),
        (
            "log_end_offset",
            "The offset of the next record; its rate is the rate of records received.",
            lambda log: log.end_offset,
        ),
        ("log_size_bytes", "The size of the segments on the disk.", lambda log: log.size_bytes),
        ("num_log_segments", "Segments.", lambda log: len(log.segments)),
    ):
        samples = [((place.topic, str(place.partition)), float(read(log))) for place, log in logs]
        yield Figure(f"kafka_log_{name}", GAUGE, meaning, ("topic", "partition"), samples)


def list_disk_figures(node: BrokerNode) -> Iterator[Figure]:
    """Yield the metrics of the log directories."""
    volumes = {}
    for directory in node.directory.online():
        with suppress(OSError):  # such a directory is about to be taken offline
            volumes[str(directory.path)] = shutil.disk_usage(directory.path)
    for name, meaning, read in (
        ("total_bytes", "The size of the volume of a log directory.", attrgetter("total")),
        ("usable_bytes", "The free bytes of the volume of a log directory.", attrgetter("free")),
    ):
        samples = [((path,), float(read(volume))) for path, volume in volumes.items()]
        yield Figure(f"kafka_log_log_directory_{name}", GAUGE, meaning, ("directory",), samples)
    yield make_figure(
        "kafka_log_log_manager_offline_log_directory_count",
        GAUGE,
        "Log directories that are out of service.",
        len(node.directory.offline),
    )


def list_group_figures(node: BrokerNode) -> Iterator[Figure]:
    """Yield the metrics of the groups that this broker coordinates. A broker that no group has used has no coordinator."""
    groups = [group for group, _ in node.groups.loaded_groups()] if "groups" in vars(node) else []
    counts = Counter((group.kind, str(group.state)) for group in groups)
    members: Counter[str] = Counter()
    for group in groups:
        members[group.kind] += len(group.members)
    yield Figure(
        "kafka_server_group_coordinator_metrics_group_count",
        GAUGE,
        "Groups that this broker coordinates, by kind and state.",
        ("protocol", "state"),
        list(counts.items()),
    )
    yield Figure(
        "kafka_server_group_coordinator_metrics_member_count",
        GAUGE,
        "Members of these groups, by kind.",
        ("protocol",),
        [((kind,), count) for kind, count in members.items()],
    )
    committed = node.groups.committed_offsets() if "groups" in vars(node) else ()
    yield Figure(
        "kafka_server_group_coordinator_metrics_committed_offset",
        GAUGE,
        "The committed offset of a group; the end offset of the log minus this is its lag.",
        ("group", "topic", "partition"),
        [((group, place.topic, str(place.partition)), float(offset)) for group, place, offset in committed],
    )


def list_share_figures(node: BrokerNode) -> Iterator[Figure]:
    """Yield the metrics of share groups that read from this broker."""
    if "share_partitions" not in vars(node):
        return
    counts, places = node.share_partitions.counts, node.share_partitions.describe()
    sessions = len(node.share_partitions.sessions)
    yield make_figure("kafka_server_share_session_cache_share_sessions_count", GAUGE, "Open share sessions.", sessions)
    labels = ("group", "topic", "partition")
    for name, meaning, read in (
        ("in_flight_message_count", "Records that members have acquired.", attrgetter("acquired_count")),
        ("start_offset", "The first record that is not finished.", attrgetter("start_offset")),
        ("lag", "Records that are not finished.", attrgetter("lag")),
    ):
        samples = [((each.group_id, each.topic, str(each.partition)), float(read(each))) for each in places]
        yield Figure(f"kafka_server_share_partition_metrics_{name}", GAUGE, meaning, labels, samples)
    yield Figure(
        "kafka_server_share_partition_metrics_delivery_count",
        GAUGE,
        "Records that are not finished, by the number of their deliveries.",
        (*labels, "deliveries"),
        [
            ((each.group_id, each.topic, str(each.partition), str(deliveries)), count)
            for each in places
            for deliveries, count in sorted(each.delivery_counts.items())
        ],
    )
    for name, meaning, by_group in (
        ("deliveries", "Deliveries of records to members.", counts.acquired),
        ("acquisition_lock_timeouts", "Records whose acquisition lock expired.", counts.expired),
    ):
        counted = [((group,), float(count)) for group, count in by_group.items()]
        yield Figure(f"kafka_server_share_group_metrics_{name}", COUNTER, meaning, ("group",), counted)
    yield Figure(
        "kafka_server_share_group_metrics_record_acknowledgements",
        COUNTER,
        "Acknowledged records, by the type of acknowledgement.",
        ("group", "ack_type"),
        list(counts.acknowledged.items()),
    )


def list_certificate_figures(expiries: Mapping[str, float]) -> list[Figure]:
    """Return the metric of the certificates of listeners with TLS; empty if there are none."""
    if not expiries:
        return []
    return [
        Figure(
            "ottla_certificate_expiry_timestamp_seconds",
            GAUGE,
            "When the first certificate of a listener's chain expires, in seconds since 1970.",
            ("listener",),
            [((listener,), expiry) for listener, expiry in expiries.items()],
        )
    ]


def list_controller_figures(raft: Raft, metadata: ClusterMetadata | None) -> Iterator[Figure]:
    """Yield the metrics of the quorum, as this voter sees it, and those of the active controller if it is that.

    `metadata` is the active controller's; None on other nodes.
    """
    for name, meaning, value in (
        ("active_controller_count", "1 on the active controller, else 0.", int(raft.state is State.LEADER)),
        ("current_leader", "The node that leads the quorum; -1 while it is unknown.", leader_id(raft)),
        ("current_epoch", "The epoch of the quorum.", raft.epoch),
        ("high_watermark", "The end of the committed metadata.", raft.high_watermark),
        ("log_end_offset", "The end of this node's metadata log.", raft.log.end),
        ("voter_count", "Voters of the quorum.", len(raft.voters)),
    ):
        yield make_figure(f"kafka_raft_{name}", GAUGE, meaning, value)
    if metadata is not None:
        yield from list_cluster_figures(metadata)


def list_cluster_figures(metadata: ClusterMetadata) -> Iterator[Figure]:
    """Yield the state of the whole cluster, as the active controller sees it. Names are those of Kafka's KafkaController."""
    partitions = [partition for topic in metadata.topics.values() for partition in topic.partitions]
    fenced = sum(each.fenced for each in metadata.registrations.values())
    for name, meaning, value in (
        ("active_broker_count", "Brokers that are registered and not fenced.", len(metadata.registrations) - fenced),
        ("fenced_broker_count", "Brokers that are registered and fenced: they are down, or starting.", fenced),
        ("global_topic_count", "Topics of the cluster.", len(metadata.topics)),
        ("global_partition_count", "Partitions of the cluster.", len(partitions)),
        ("offline_partitions_count", "Partitions without a leader.", sum(each.leader < 0 for each in partitions)),
        (
            "preferred_replica_imbalance_count",
            "Partitions that are not led by their preferred leader.",
            sum(each.leader != each.replicas[0] for each in partitions),
        ),
    ):
        yield make_figure(f"kafka_controller_{name}", GAUGE, meaning, value)


def leader_id(raft: Raft) -> int:
    return -1 if raft.leader_id is None else raft.leader_id
