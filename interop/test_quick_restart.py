"""Three nodes of ours are restarted in turn without a pause, while transactional clients of librdkafka copy records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from interop.background import Background
from interop.kafka_tools import Tools
from interop.test_cluster_replicas import read
from interop.writer import Writer
from ottla import Admin, Cluster, NewTopic
from rivals.apache_kafka import fetch
from rivals.kafka_cluster import wait_for

NODES = (1, 2, 3)
SOURCE, COPY = "source", "copy"
COPIERS = 6
TIMEOUT_SECONDS = 60.0
"""The timeout in seconds of each client call."""
STANDSTILL_SECONDS = 40.0
"""A copier without progress for this time is frozen: librdkafka reconnects at least every ten seconds."""


class Copier(Background):
    """Copies a topic in transactions that commit the offsets.

    It uses librdkafka's default settings, except for the re-bootstrap: that forgets all brokers, which also freezes the
    client, and no broker can prevent that.
    """

    def __init__(self, servers: str, number: int) -> None:
        super().__init__(daemon=True)  # a frozen copier is abandoned
        self._servers = servers
        self._name = f"copier-{number}"
        self._partition = number % len(NODES)
        self.copied: list[int] = []
        """The committed numbers."""
        self.failed = ""

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(STANDSTILL_SECONDS)

    def _run(self) -> None:
        settings = {"bootstrap.servers": self._servers, "metadata.recovery.strategy": "none"}
        offsets = {"group.id": self._name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = ck.Consumer({**settings, **offsets, "isolation.level": "read_committed"})
        producer = ck.Producer({**settings, "transactional.id": self._name})
        try:
            producer.init_transactions(TIMEOUT_SECONDS)
            consumer.subscribe([SOURCE])
            while not self._over.is_set():
                messages = [message for message in consumer.consume(20, 0.1) if not message.error()]
                if messages:
                    self._copy(consumer, producer, messages)
        except ck.KafkaException as error:
            self.failed = str(error)
        finally:
            consumer.close()

    def _copy(self, consumer: ck.Consumer, producer: ck.Producer, messages: list[ck.Message]) -> None:
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(COPY, message.value(), self._name, partition=self._partition)
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_SECONDS)
            producer.commit_transaction(TIMEOUT_SECONDS)
            self.copied += [int(message.value() or b"") for message in messages]
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(TIMEOUT_SECONDS)
            for place in consumer.committed(consumer.assignment(), TIMEOUT_SECONDS):
                place.offset = max(place.offset, 0)
                consumer.seek(place)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    fetch()
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        layouts = {node - 1: (node, *(each for each in NODES if each != node)) for node in NODES}
        admin.create_topics([NewTopic(topic, replica_assignments=layouts) for topic in (SOURCE, COPY)])
        yield cluster


def test_no_transactional_client_freezes(cluster: Cluster) -> None:
    """Issue 5511 of librdkafka: a node is missing in Metadata for a second, and the groups that it coordinates freeze."""
    copiers = [Copier(cluster.bootstrap_servers, number) for number in range(COPIERS)]
    with Writer(cluster.bootstrap_servers, [SOURCE], pace_seconds=0.01) as writer:
        for copier in copiers:
            copier.__enter__()
        wait_for(lambda: all(each.copied for each in copiers), "all copy")
        for node in NODES:
            cluster.stop(node)
            cluster.start(node)
            writer.go_on()
        before = [len(each.copied) for each in copiers]
        wait_for(
            lambda: all(len(each.copied) > count for each, count in zip(copiers, before, strict=True)),
            lambda: f"frozen: {[len(each.copied) - count for each, count in zip(copiers, before, strict=True)]}",
            STANDSTILL_SECONDS,
        )
        written = {*range(writer.count)}
    wait_for(lambda: all(written <= {*each.copied} for each in copiers), "all is copied")
    for copier in copiers:
        copier.__exit__()
    assert [each.failed for each in copiers] == [""] * COPIERS
    found: Counter[int] = Counter()
    for partition in range(len(NODES)):
        found.update(read(cluster.bootstrap_servers, COPY, partition=partition, isolation_level="read_committed"))
    assert found == Counter(number for each in copiers for number in each.copied)


def test_a_node_that_has_just_stopped_is_listed_for_librdkafka_and_for_no_other_client(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    with Tools() as tools, Admin(cluster.client_settings()) as admin:
        cluster.stop(3)
        topics = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=TIMEOUT_SECONDS)
        assert sorted(topics.brokers) == [1, 2, 3]
        assert all(each.leader != 3 for each in topics.topics[SOURCE].partitions.values())
        assert {each.node_id for each in admin.describe_cluster().nodes} == {1, 2}
        groups = tools.run("GroupsCommand", "--bootstrap-server", servers, "--list")
        assert groups.status == 0, groups.text
        librdkafka = AdminClient({"bootstrap.servers": servers})
        wait_for(
            lambda: sorted(librdkafka.list_topics(timeout=TIMEOUT_SECONDS).brokers) == [1, 2], "it is listed no more"
        )
