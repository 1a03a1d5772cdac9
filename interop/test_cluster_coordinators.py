"""Move the coordinator of groups and transactions from Apache Kafka to ours, between two brokers of ours after a kill,
and back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import confluent_kafka as ck
import pytest

from interop.cluster_members import CLASSIC, CONSUMER, COPY, TOPICS, Copier, Member
from interop.kafka_tools import Tools
from interop.test_cluster_replicas import Cluster, read, reassign
from interop.transactor import Transactor
from interop.writer import Writer
from ottla import Admin, NewTopic
from ottla.java_hash import positive_java_hash
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from rivals.apache_kafka import ApacheKafka
from rivals.kafka_cluster import Node, OttlaNode, wait_for
from tests.broker.wire import Wire

KAFKA, OURS, OTHER = 1, 21, 22
"""The first node is also the controller."""
OFFSETS, STATE, COUNT = "__consumer_offsets", "__transaction_state", 50


@pytest.fixture(scope="module")
def cluster(kafka_cluster: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes: dict[int, Node] = {
        each: OttlaNode(each, kafka_cluster, tmp_path_factory.mktemp(f"node-{each}")) for each in (OURS, OTHER)
    }
    try:
        for node in nodes.values():
            node.start()
        for node in nodes.values():
            node.wait_until_in()
        cluster = Cluster(kafka_cluster, nodes)
        with Admin(bootstrap_servers=cluster.address) as admin:
            admin.create_topics([NewTopic(topic, replica_assignments={0: (KAFKA,)}) for topic in TOPICS])
        wait_for(lambda: coordinator(cluster, "any") == coordinator(cluster, "any", 1) == KAFKA)
        yield cluster
    finally:
        with ThreadPoolExecutor() as threads:
            list(threads.map(Node.stop, nodes.values()))


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def coordinator(cluster: Cluster, key: str, key_type: int = 0) -> int:
    with Wire(cluster.address) as wire:
        return int(wire.ask(FindCoordinatorRequest(key, key_type), 2).node_id)


def offsets_of(cluster: Cluster, group: str) -> dict[str, int]:
    """Return the committed offsets of a group, read by a separate client. Waits until a coordinator responds."""
    consumer = ck.Consumer({"bootstrap.servers": cluster.address, "group.id": group})
    reported: dict[str, int] = {}

    def has_answer() -> bool:
        try:
            places = consumer.committed([ck.TopicPartition(topic, 0) for topic in TOPICS], timeout=5)
        except ck.KafkaException:
            return False
        reported.update(
            (each.topic, max(each.offset, 0)) for each in places
        )  # a negative offset means that there is none
        return True

    try:
        wait_for(has_answer, "committed offsets")
    finally:
        consumer.close()
    return reported


def read_on(cluster: Cluster, members: list[Member], writer: Writer, group: str) -> None:
    """Write, read and commit more, and check that all acknowledged offsets from before are still there."""
    promised = {topic: max(member.committed[topic] for member in members) for topic in TOPICS}
    reported = offsets_of(cluster, group)
    assert all(reported[topic] >= promised[topic] for topic in TOPICS), (reported, promised)
    writer.go_on()
    wanted = dict(writer.acknowledged)
    wait_for(lambda: all(max(each.committed[topic] for each in members) >= wanted[topic] for topic in TOPICS))


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_a_group_continues_while_its_coordinator_moves_to_ours_is_killed_and_moves_back(
    cluster: Cluster, tools: Tools, tmp_path: Path, protocol: str
) -> None:
    """In the `consumer` case one member uses the classic protocol: the persisted state of both protocols is read by
    both brokers.
    """
    group = f"movers-{protocol}"
    place = positive_java_hash(group) % COUNT
    with (
        cluster.writer(TOPICS) as writer,
        Member(cluster.address, group) as one,
        Member(cluster.address, group, protocol) as two,
    ):
        members = [one, two]
        read_on(cluster, members, writer, group)
        reassign(cluster, tools, tmp_path, OFFSETS, [OURS, OTHER], place)
        wait_for(lambda: coordinator(cluster, group) == OURS)
        read_on(cluster, members, writer, group)
        cluster.nodes[OURS].kill()
        wait_for(lambda: coordinator(cluster, group) == OTHER)
        read_on(cluster, members, writer, group)
        cluster.restart(OURS)
        reassign(cluster, tools, tmp_path, OFFSETS, [KAFKA], place)
        wait_for(lambda: coordinator(cluster, group) == KAFKA)
        read_on(cluster, members, writer, group)
    assert not writer.failed
    wanted = offsets_of(cluster, group)
    for topic in TOPICS:
        found = Counter(one.found[topic] + two.found[topic])
        assert set(read(cluster.address, topic)[: wanted[topic]]) <= set(found)
        assert wanted[topic] > 0


def test_transactional_offsets_are_stored_by_ours_and_each_record_is_copied_once(
    cluster: Cluster, tools: Tools, tmp_path: Path
) -> None:
    """Kafka's broker coordinates the transactions.

    Our broker leads the group's partition, and receives the markers from it.
    """
    group = "carriers"  # the partition of this group is removed with these nodes, so no other test uses the group
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(COPY, replica_assignments={0: (OURS, OTHER)})])
    reassign(cluster, tools, tmp_path, OFFSETS, [OURS, OTHER], positive_java_hash(group) % COUNT)
    wait_for(lambda: coordinator(cluster, group) == OURS)
    with cluster.writer(TOPICS) as writer, Copier(cluster.address, group) as copier:
        writer.go_on()
        wait_for(lambda: copied(cluster) > 20)
        cluster.nodes[OURS].kill()
        writer.go_on()
        before = copied(cluster)
        wait_for(lambda: copied(cluster) > before + 20 or copier.failed)
        cluster.restart(OURS)
    assert not copier.failed
    numbers = read(cluster.address, COPY, isolation_level="read_committed")
    given = read(cluster.address, TOPICS[0])
    assert numbers == given[: len(numbers)]
    assert len(numbers) > 40


def copied(cluster: Cluster) -> int:
    return len(read(cluster.address, COPY, isolation_level="read_committed"))


def test_transactions_continue_while_their_coordinator_moves_to_ours_is_killed_and_moves_back(
    cluster: Cluster, tools: Tools, tmp_path: Path
) -> None:
    """Kafka's broker and each of ours lead one partition, so the coordinator sends markers to all of them."""
    name, topics = "whole", {"whole-a": KAFKA, "whole-b": OURS, "whole-c": OTHER}
    place = positive_java_hash(name) % COUNT
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: (leader,)}) for topic, leader in topics.items()])
    with Transactor(cluster.address, list(topics), name) as transactor:
        transactor.go_on()
        reassign(cluster, tools, tmp_path, STATE, [OURS, OTHER], place)
        wait_for(lambda: coordinator(cluster, name, 1) == OURS)
        transactor.go_on()
        cluster.nodes[OURS].kill()
        wait_for(lambda: coordinator(cluster, name, 1) == OTHER)
        cluster.restart(OURS)
        transactor.go_on()
        reassign(cluster, tools, tmp_path, STATE, [KAFKA], place)
        wait_for(lambda: coordinator(cluster, name, 1) == KAFKA)
        transactor.go_on()
    assert not transactor.failed
    for topic in topics:
        assert read(cluster.address, topic, isolation_level="read_committed") == list(range(transactor.count))
        assert len(read(cluster.address, topic)) > transactor.count
