"""Upgrade the Apache Kafka nodes of a mixed cluster from 4.3 to 4.4, and then its features, while clients write and read.

Three combined nodes: ours and two of Kafka. All are voters, and each leads a topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop.background import Background
from interop.kafka_places import (
    BROKER_PORT,
    PREVIOUS,
    REFERENCE,
    CombinedPlace,
    KafkaPlace,
    fetch,
    give_both_roles,
)
from interop.kafka_tools import tool
from interop.reading_member import ReadingMember
from interop.streams_application import LINES, TOTALS, instance, read_totals, send_words
from interop.test_cluster_replicas import read
from interop.writer import Writer
from ottla import Admin, Consumer, NewTopic, Producer, ShareConsumer
from ottla.client.admin import ConfigResource
from ottla.errors import OttlaError
from rivals.kafka_cluster import wait_for
from tests.broker.quorum_nodes import Place, new_hosts

OURS, KAFKAS = 1, (2, 3)
NODES = (OURS, *KAFKAS)
TOPICS = [f"led-by-{node}" for node in NODES]
JOBS = TOPICS[0]
"""The topic that a share group reads, too."""
BEFORE = {"metadata.version": 30, "share.version": 1, "streams.version": 1}
AFTER = {"metadata.version": 33, "share.version": 2, "streams.version": 1}
COORDINATION = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
WORDS = [f"w{number % 7}" for number in range(500)]


class SharingMember(Background):
    """A member of a share group. It accepts every record and counts the deliveries of each offset."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.delivered: Counter[int] = Counter()
        self._error = ""
        self._settings = {"bootstrap.servers": servers, "group.id": "sharers"}

    def wait_until_delivered(self, count: int) -> None:
        """Wait until the records below an offset are delivered."""
        wanted = set(range(count))
        wait_for(
            lambda: self._error or wanted <= self.delivered.keys(), lambda: f"{len(self.delivered)} of {count} are read"
        )
        assert not self._error, self._error

    def _run(self) -> None:
        try:
            with ShareConsumer(self._settings) as consumer:
                consumer.subscribe([JOBS])
                while not self._over.is_set():
                    self.delivered.update(each.offset for each in consumer.poll(0.2))
        except OttlaError as error:
            self._error = f"{type(error).__name__}: {error}"


class MixedCluster:
    """A combined node of ours and two of Apache Kafka 4.3, formatted with the features of that release."""

    def __init__(self, folder: Path) -> None:
        hosts = new_hosts(len(NODES))
        self.ours = CombinedPlace(folder, OURS, hosts[0])
        self.kafkas = [
            KafkaPlace(folder, node, host, version=PREVIOUS) for node, host in zip(KAFKAS, hosts[1:], strict=True)
        ]
        self.all: list[Place] = [self.ours, *self.kafkas]
        for place, host in zip(self.all, hosts, strict=True):
            give_both_roles(place, host)
            place.settings |= COORDINATION
            place.knows(self.all)
        voters = ",".join(f"{each.node_id}@{each.address}:{each.voter.directory_id}" for each in self.all)
        for kafka in self.kafkas:
            kafka.format_as("-I", voters)
        self.ours.format([each.voter for each in self.all], PREVIOUS.release)
        self.servers = ",".join(f"{host}:{BROKER_PORT}" for host in hosts)

    def is_in_sync(self, admin: Admin) -> bool:
        """True if every broker is in the ISR of every partition with three replicas."""
        try:
            topics = admin.describe_topics().values()
        except OttlaError:
            return False
        return all(len(each.in_sync_replicas) == len(each.replicas) for topic in topics for each in topic.partitions)

    def is_joined(self, admin: Admin) -> bool:
        try:
            return {node.node_id for node in admin.describe_cluster().nodes} == set(NODES)
        except OttlaError:
            return False


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    fetch(PREVIOUS)
    fetch(REFERENCE)
    cluster = MixedCluster(tmp_path)
    with ExitStack() as undo:
        for place in cluster.all:
            undo.callback(place.kill)
            place.start()
        yield cluster


def levels(admin: Admin) -> dict[str, int]:
    found = admin.describe_features().finalized_features
    return {name: found[name].max_version_level for name in AFTER if name in found}


def upgrade_nodes(cluster: MixedCluster, admin: Admin, writer: Writer) -> None:
    """Replace the nodes of Kafka one after the other, each when all replicas are in sync again."""
    for kafka in cluster.kafkas:
        starts = kafka.said().count("Kafka Server started")
        kafka.end()
        writer.go_on()
        kafka.jars = REFERENCE.jars
        kafka.start()
        wait_for(lambda kafka=kafka, starts=starts: kafka.said().count("Kafka Server started") > starts, "it starts")  # type: ignore[misc]
        wait_for(lambda: cluster.is_joined(admin) and cluster.is_in_sync(admin), "all replicas are in sync")
        writer.go_on()


def test_nothing_is_lost_while_kafkas_nodes_and_the_features_are_upgraded(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    servers = cluster.servers
    with Admin(bootstrap_servers=servers) as admin:
        wait_for(lambda: cluster.is_joined(admin), "all brokers are in the cluster")
        assert levels(admin) == BEFORE
        layouts = [(node, *(each for each in NODES if each != node)) for node in NODES]
        admin.create_topics(
            [
                *(
                    NewTopic(topic, replica_assignments={0: layout})
                    for topic, layout in zip(TOPICS, layouts, strict=True)
                ),
                NewTopic(LINES, 2),
                NewTopic(TOTALS, 1),
            ]
        )
        admin.alter_configs({ConfigResource("group", "sharers"): {"share.auto.offset.reset": "earliest"}})
        writer = Writer(servers, TOPICS)
        members = [ReadingMember(servers, TOPICS, protocol) for protocol in ("classic", "consumer")]
        sharing = SharingMember(servers)
        with ExitStack() as reading, ExitStack() as writing:
            for member in (*members, sharing):
                reading.enter_context(member)
            writing.enter_context(writer)
            writer.go_on()
            upgrade_nodes(cluster, admin, writer)
            tool("FeatureCommand", "--bootstrap-server", servers, "upgrade", "--release-version", REFERENCE.release)
            wait_for(lambda: levels(admin) == AFTER, lambda: f"the levels are {levels(admin)}")
            writer.go_on()
            writing.close()
            for member in members:
                member.wait_until_read(writer.count)
            sharing.wait_until_delivered(writer.count)

        for topic in TOPICS:
            assert read(servers, topic) == list(range(writer.count))
        for member in members:
            for numbers in member.seen.values():
                assert list(dict.fromkeys(numbers)) == list(range(writer.count)), "each is first read in order"
        count_words(servers, tmp_path)
        assert [line for kafka in cluster.kafkas for line in kafka.complaints() if "Replay" in line] == []


def count_words(servers: str, folder: Path) -> None:
    """Count words with Kafka Streams in a streams group."""
    settings = {"bootstrap.servers": servers, "group.id": "totals", "auto.offset.reset": "earliest"}
    with (
        instance(servers, folder / "streams"),
        Producer(bootstrap_servers=servers) as producer,
        Consumer(settings | {"isolation.level": "read_committed"}) as consumer,
    ):
        consumer.subscribe([TOTALS])
        send_words(producer, WORDS)
        read_totals(consumer, {}, Counter(WORDS))
