"""Move a cluster of ours to Apache Kafka node by node, and back, while a producer writes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interop.kafka_places import BROKER_PORT, REFERENCE, VERSIONS, KafkaPlace, KafkaVersion, fetch
from interop.streams_application import GROUP, LINES, TOTALS, instance, read_totals, send_words
from ottla import AcknowledgeType, Admin, Consumer, NewTopic, ShareConsumer
from ottla.client.admin import ConfigResource
from ottla.client.admin.quorum import RaftVoterEndpoint
from ottla.client.producer import Producer
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from rivals.kafka_cluster import wait_for
from tests.broker.cluster_nodes import BrokerPlace, counted, is_led, make_topic
from tests.broker.quorum_nodes import PORT, Place, new_hosts

CONTROLLER, OURS, KAFKAS = 1, (101, 102), (201, 202)
PARTITIONS = 4
SNAPSHOTS = {"metadata_log_max_snapshot_interval_ms": "500", "metadata_max_retention_bytes": "0"}
"""Frequent snapshots, so that a new node receives a snapshot and then only the rest of the log."""
AT_ONCE = 20
"""The number of records in flight."""
COORDINATORS = {
    f"{topic}.{name}": "2"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for name in ("replication.factor", "num.partitions")
}
JOBS = 60
"""The number of records that a share group finds before the move."""
WORDS = [f"w{number % 7}" for number in range(400)]


class Writer:
    """Writes consecutive numbers until it is stopped. Each number is acknowledged by the whole ISR."""

    def __init__(self, servers: str) -> None:
        self.written: Counter[bytes] = Counter()
        self.errors: list[Exception] = []
        self._servers = servers
        self._stopping = threading.Event()

    def run(self) -> None:
        settings = {"bootstrap.servers": self._servers, "acks": "all", "enable.idempotence": True}
        with Producer(settings) as producer:
            number = 0
            while not self._stopping.is_set() and not self.errors:
                values = [b"%d" % each for each in range(number, number + AT_ONCE)]
                number += AT_ONCE
                sent = [producer.send("flights", value, partition=int(value) % PARTITIONS) for value in values]
                try:
                    for each in sent:
                        each.result(120)
                except Exception as error:
                    self.errors.append(error)
                else:
                    self.written.update(values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()

    def wait_for_progress(self) -> None:
        """Wait until it has written more than before."""
        before = self.written.total()
        wait_for(lambda: self.errors or self.written.total() >= before + 5 * AT_ONCE, "more is written")
        assert self.errors == []


class Walk:
    """The nodes of both kinds, and the addresses of all of them."""

    def __init__(self, folder: Path, version: KafkaVersion) -> None:
        hosts = new_hosts(5)
        self.controller = Place(folder, CONTROLLER, hosts[0], **SNAPSHOTS)
        self.controller.format([self.controller.voter], version.release)
        self.ours = [
            BrokerPlace(folder, id_, host, [self.controller], **COORDINATORS)
            for id_, host in zip(OURS, hosts[1:], strict=False)
        ]
        self.kafkas = [
            KafkaPlace(folder, id_, host, [self.controller], version).is_broker_too(host)
            for id_, host in zip(KAFKAS, hosts[3:], strict=True)
        ]
        for node in self.all:
            node.knows([self.controller, self.kafkas[0]])
        kafkas = [each.address.replace(f":{PORT}", f":{BROKER_PORT}") for each in self.kafkas]
        self.servers = ",".join([*(each.address for each in self.ours), *kafkas])

    @property
    def all(self) -> list[Place]:
        return [self.controller, *self.ours, *self.kafkas]

    def has_forgotten_the_beginning(self) -> bool:
        folder = self.controller.data / "__cluster_metadata-0"
        return not (folder / f"{0:020}.log").exists() and any(folder.glob("*.checkpoint"))

    def brokers(self, admin: Admin) -> set[int]:
        return {node.node_id for node in admin.describe_cluster().nodes}

    def move_all(self, admin: Admin, brokers: tuple[int, int]) -> None:
        """Move every partition of every topic to the two brokers, one replica on each."""
        found = admin.describe_topics()
        partitions = [
            TopicPartition(name, each.partition) for name, topic in found.items() for each in topic.partitions
        ]
        wanted = {tp: brokers if tp.partition % 2 else brokers[::-1] for tp in partitions}
        admin.alter_partition_reassignments(wanted)
        wait_for(lambda: not admin.list_partition_reassignments(), "all copies are moved")


@pytest.fixture(params=VERSIONS, ids=lambda version: version.release)
def walk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Walk]:
    """Our nodes are running; Kafka's are formatted."""
    fetch(request.param)
    walk = Walk(tmp_path, request.param)
    for each in walk.kafkas:
        each.format_as("--no-initial-controllers")
    with ExitStack() as undo:
        for node in walk.all:
            undo.callback(node.kill)
        for node in (walk.controller, *walk.ours):
            node.start()
        yield walk


@pytest.fixture
def writer(walk: Walk) -> Writer:
    """A writer to a topic with leaders on our brokers."""
    configs = [CreatableTopicConfig("min.insync.replicas", "2")]
    make_topic(walk.ours[0], CreatableTopic("flights", PARTITIONS, 2, configs=configs))
    wait_for(lambda: is_led(walk.ours[0], "flights", in_sync=2), "ours lead")
    return Writer(walk.servers)


def test_a_cluster_moves_from_ours_to_kafkas_while_a_producer_writes(walk: Walk, writer: Writer) -> None:
    with Admin({"bootstrap.servers": walk.servers}) as admin, writer.writing():
        walk_out(walk, admin, writer)
    assert counted(walk.servers, "flights", writer.written.total()) == writer.written


@pytest.mark.parametrize("walk", [REFERENCE], ids=["4.4"], indirect=True)
def test_share_groups_and_streams_groups_move_with_the_cluster(walk: Walk, writer: Writer, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": walk.servers}
    with Admin(settings) as admin, Producer(settings) as producer, ExitStack() as undo:
        admin.create_topics([NewTopic("jobs", 1, 2), NewTopic(LINES, 2, 2), NewTopic(TOTALS, 1, 2)])
        admin.alter_configs({ConfigResource("group", "workers"): {"share.auto.offset.reset": "earliest"}})
        for number in range(JOBS):
            producer.send("jobs", b"%d" % number)
        accept_all_but_the_last(walk.servers)
        admin.alter_consumer_group_offsets("stopped", {TopicPartition("jobs", 0): 7})
        undo.enter_context(instance(walk.servers, tmp_path / "streams"))
        totals = undo.enter_context(
            Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "group.id": "r"})
        )
        totals.subscribe([TOTALS])
        counted_words: dict[str, int] = {}
        send_words(producer, WORDS)
        read_totals(totals, counted_words, Counter(WORDS))
        start_offsets = admin.list_share_group_offsets("workers")
        topology = admin.describe_streams_groups([GROUP])[GROUP].subtopologies

        with writer.writing():
            walk_out(walk, admin, writer)

        assert start_offsets
        assert admin.list_share_group_offsets("workers") == start_offsets
        assert [at.offset for at in admin.list_consumer_group_offsets("stopped").values()] == [7]
        assert admin.describe_streams_groups([GROUP])[GROUP].subtopologies == topology
        send_words(producer, WORDS)
        read_totals(totals, counted_words, Counter(WORDS + WORDS))
        producer.send("jobs", b"%d" % JOBS).result(60)
        assert deliveries(walk.servers, 2) == [(JOBS - 1, 2), (JOBS, 1)]
    assert counted(walk.servers, "flights", writer.written.total()) == writer.written


def accept_all_but_the_last(servers: str) -> None:
    """Accept all records of the topic in a share group, and release the last one."""
    settings = {"bootstrap.servers": servers, "group.id": "workers", "share.acknowledgement.mode": "explicit"}
    with ShareConsumer(settings) as consumer:
        consumer.subscribe(["jobs"])
        last = -1

        def is_done() -> bool:
            nonlocal last
            for record in consumer.poll(0.5):
                last = record.offset
                consumer.acknowledge(record, AcknowledgeType.RELEASE if last == JOBS - 1 else AcknowledgeType.ACCEPT)
            return last == JOBS - 1

        wait_for(is_done, lambda: f"{last + 1} of {JOBS} are delivered")
        assert set(consumer.commit().values()) == {None}


def deliveries(servers: str, count: int) -> list[tuple[int, int]]:
    """Return the offsets of the records that the share group receives, with their delivery counts."""
    found: list[tuple[int, int]] = []

    def is_done() -> bool:
        found.extend((each.offset, each.delivery_count or 0) for each in consumer.poll(0.5))
        return len(found) >= count

    with ShareConsumer({"bootstrap.servers": servers, "group.id": "workers"}) as consumer:
        consumer.subscribe(["jobs"])
        wait_for(is_done, lambda: f"{found} are delivered")
        consumer.commit()
    return sorted(found)


@pytest.mark.long
def test_a_cluster_moves_to_kafkas_and_back_to_ours_while_a_producer_writes(walk: Walk, writer: Writer) -> None:
    with Admin({"bootstrap.servers": walk.servers}) as admin, writer.writing():
        walk_out(walk, admin, writer)
        walk_back(walk, admin, writer)
    assert counted(walk.servers, "flights", writer.written.total()) == writer.written


def walk_out(walk: Walk, admin: Admin, writer: Writer) -> None:
    writer.wait_for_progress()
    wait_for(walk.has_forgotten_the_beginning, "what was decided first is in a snapshot alone")
    for kafka in walk.kafkas:
        kafka.start()
    for kafka in walk.kafkas:
        kafka.wait_until_started()
    wait_for(lambda: walk.brokers(admin) == {*OURS, *KAFKAS}, "brokers of both are in the cluster")
    walk.move_all(admin, KAFKAS)
    writer.wait_for_progress()
    assert [line for kafka in walk.kafkas for line in kafka.complaints()] == [], "of what ours decided"

    take_over(admin, walk.kafkas[0], walk.controller)
    walk.controller.end()
    writer.wait_for_progress()
    leave(walk.ours, admin)
    wait_for(lambda: walk.brokers(admin) == {*KAFKAS}, "Kafka's are alone")
    writer.wait_for_progress()


def walk_back(walk: Walk, admin: Admin, writer: Writer) -> None:
    """Our nodes return with their old directories."""
    for node in (walk.controller, *walk.ours):
        node.start()
    wait_for(lambda: walk.brokers(admin) == {*OURS, *KAFKAS}, "brokers of both are in the cluster again")
    walk.move_all(admin, OURS)
    writer.wait_for_progress()

    take_over(admin, walk.controller, walk.kafkas[0])
    writer.wait_for_progress()
    leave(walk.kafkas, admin)
    wait_for(lambda: walk.brokers(admin) == {*OURS}, "ours are alone")
    writer.wait_for_progress()


def leave(brokers: Sequence[Place], admin: Admin) -> None:
    for broker in brokers:
        broker.end()
        admin.unregister_broker(broker.node_id)


def take_over(admin: Admin, newcomer: Place, former: Place) -> None:
    """Add a voter, remove the former one, and wait until the new voter is the active controller."""
    wait_for(lambda: newcomer.node_id in observers(admin), "the newcomer copies the metadata")
    host = newcomer.address.rpartition(":")[0]
    endpoint = RaftVoterEndpoint("CONTROLLER", host, PORT)
    admin.add_raft_voter(newcomer.node_id, observers(admin)[newcomer.node_id], [endpoint])
    voters = {each.replica_id: each.replica_directory_id for each in admin.describe_metadata_quorum().voters}
    admin.remove_raft_voter(former.node_id, voters[former.node_id])
    wait_for(lambda: leader(admin) == newcomer.node_id, "the newcomer decides")


def leader(admin: Admin) -> int | None:
    """Return the active controller of the cluster, or None during an election."""
    try:
        return admin.describe_metadata_quorum().leader_id
    except KafkaError:
        return None


def observers(admin: Admin) -> dict[int, str]:
    return {each.replica_id: each.replica_directory_id for each in admin.describe_metadata_quorum().observers}
