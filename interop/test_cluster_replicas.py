"""Replication between our brokers and Apache Kafka's under an idempotent producer, while leaders and followers are
killed.

There are three topics: in two of them each kind leads the other, and in the third ours leads ours. So each fault
affects a broker in all its roles.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from interop.java_transactor import JavaTransactor
from interop.java_writer import JavaWriter
from interop.kafka_tools import Tools
from interop.mixed_victim import MixedVictim
from interop.transactor import Transactor
from interop.writer import Writer
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin import ConfigResource
from ottla.coordination.cluster.topic import PartitionState
from ottla.model import LATEST
from rivals.apache_kafka import ApacheKafka
from rivals.kafka_cluster import PATIENCE, SHORT, KafkaNode, Node, OttlaNode, View, wait_for
from tests.checker.generator import KILLED, Crash, planned
from tests.checker.history import Ended, GivenUp
from tests.checker.play import play
from tests.checker.verdict import verdict

KAFKA, OURS, OTHER = 2, 11, 12
TOPICS = {"kafka-ours": (KAFKA, OURS), "ours-kafka": (OURS, KAFKA), "ours-ours": (OURS, OTHER)}
"""The leader and the follower of each topic."""
SESSION_SECONDS = int(SHORT["broker.session.timeout.ms"]) / 1000
BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = {KAFKA: "k", OURS: "a", OTHER: "b"}


class Cluster:
    """The brokers by node id, and the controllers' view of them."""

    def __init__(self, kafka: ApacheKafka, nodes: Mapping[int, Node]) -> None:
        self.address = kafka.bootstrap_servers
        self.nodes = nodes
        self.view = View(kafka)

    def writer(self, topics: Sequence[str], address: str = "") -> Writer:
        """Return a writer that reports the state of the cluster if it is blocked."""
        return Writer(address or self.address, topics, about=lambda: self.view.describe(topics))

    def settle(self, topics: Mapping[str, Sequence[int]]) -> None:
        """Wait until all replicas are in sync and identical."""
        for topic, replicas in topics.items():
            self.wait_in_sync(topic, replicas)
            wait_for(lambda: len(set(self.copies(topic, replicas))) == 1, f"{topic} differs")  # noqa: B023

    def wait_in_sync(self, topic: str, replicas: Sequence[int], partition: int = 0) -> None:
        def state() -> PartitionState | None:
            return self.view.state(topic, partition)

        wait_for(
            lambda: (found := state()) and set(found.isr) == set(replicas), lambda: f"{topic}-{partition}: {state()}"
        )

    def copies(self, topic: str, replicas: Sequence[int]) -> list[bytes]:
        return [self.nodes[each].log(f"{topic}-0") for each in replicas]

    def restart(self, node_id: int) -> None:
        self.nodes[node_id].start()
        self.nodes[node_id].wait_until_in()


@pytest.fixture(scope="module")
def cluster(kafka_cluster: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kinds = {KAFKA: KafkaNode, OURS: OttlaNode, OTHER: OttlaNode}
    nodes: dict[int, Node] = {}
    for node_id, kind in kinds.items():
        folder = tmp_path_factory.mktemp(f"node-{node_id}")
        settings = {"broker.rack": RACKS[node_id], "replica.selector.class": BY_RACK}
        if node_id == OTHER:
            settings["request.log"] = str(folder / "requests")
        nodes[node_id] = kind(node_id, kafka_cluster, folder, settings)
    try:
        for node in nodes.values():
            node.start()
        for node in nodes.values():
            node.wait_until_in()
        with Admin(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
            admin.create_topics(
                [NewTopic(topic, replica_assignments={0: replicas}) for topic, replicas in TOPICS.items()]
            )
        yield Cluster(kafka_cluster, nodes)
    finally:
        with ThreadPoolExecutor() as threads:
            list(threads.map(Node.stop, nodes.values()))


def read(address: str, topic: str, *, partition: int = 0, **settings: Any) -> list[int]:
    """Read all numbers of a partition, in order."""
    place = TopicPartition(topic, partition)
    # Not the consumer's end offset, which is below an open transaction: markers may be written after the commit
    # response.
    with Admin(bootstrap_servers=address) as admin:
        end = admin.list_offsets({place: LATEST})[place].offset
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([place])
        found: list[int] = []
        deadline = time.monotonic() + PATIENCE
        while consumer.position(place) < end and time.monotonic() < deadline:
            found += [int(record.value or b"") for record in consumer.poll(0.5)]
    return found


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def reassign(
    cluster: Cluster, tools: Tools, folder: Path, topic: str, replicas: Sequence[int], partition: int = 0, *more: str
) -> None:
    """Assign other replicas to a partition with Kafka's tool, and wait until the tool reports the completion."""
    command = reassigning(cluster, folder, topic, replicas, partition)
    assert tools.run(*command, "--execute", *more).status == 0

    def is_done() -> bool:
        state = cluster.view.state(topic, partition)
        return state is not None and state.replicas == tuple(replicas) and set(state.isr) == set(replicas)

    wait_for(is_done, lambda: cluster.view.state(topic, partition))
    said = tools.run(*command, "--verify").text
    assert f"Reassignment of partition {topic}-{partition} is completed." in said, said


def reassigning(cluster: Cluster, folder: Path, topic: str, replicas: Sequence[int], partition: int = 0) -> list[str]:
    """Return the arguments with which Kafka's tool assigns other replicas to a partition."""
    plan = folder / "plan.json"
    moved = {"topic": topic, "partition": partition, "replicas": list(replicas)}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    at = ("--bootstrap-server", cluster.address, "--reassignment-json-file", str(plan))
    return ["reassign.ReassignPartitionsCommand", *at]


def elect(cluster: Cluster, tools: Tools, topic: str, present: int, preferred: int) -> None:
    """Elect the preferred leader with Kafka's tool."""
    assert cluster.view.leader(topic) == present
    named = ("--election-type", "preferred", "--topic", topic, "--partition", 0)
    assert tools.run("LeaderElectionCommand", "--bootstrap-server", cluster.address, *named).status == 0
    assert cluster.view.leader(topic) == preferred


def test_a_topic_moves_to_ours_and_back_during_writes(cluster: Cluster, tools: Tools, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("moving", replica_assignments={0: (KAFKA,)})])
    with cluster.writer(["moving"]) as writer:
        writer.go_on()
        for replicas in ([OURS], [OTHER, OURS]):
            reassign(cluster, tools, tmp_path, "moving", replicas)
            writer.go_on()
        elect(cluster, tools, "moving", OURS, OTHER)
        writer.go_on()
        # A broker that receives a shutdown request moves its leaderships first.
        assert cluster.nodes[OTHER].stop() == 0
        assert cluster.view.leader("moving") == OURS
        writer.go_on()
        reassign(cluster, tools, tmp_path, "moving", [KAFKA, OURS])
        elect(cluster, tools, "moving", OURS, KAFKA)
        cluster.restart(OTHER)
        reassign(cluster, tools, tmp_path, "moving", [KAFKA])
    assert not writer.failed
    assert read(cluster.address, "moving") == list(range(writer.count))
    wait_for(lambda: not (cluster.nodes[OURS].data / "moving-0").exists(), "a folder is left")
    # It was down when its replica was removed, and does not delete it on its own.
    assert "moving-0 belongs to no partition of this broker" in cluster.nodes[OTHER].output


def test_a_reassignment_is_throttled_by_kafkas_tool(cluster: Cluster, tools: Tools, tmp_path: Path) -> None:
    topic = ConfigResource("topic", "slowly")
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("slowly", replica_assignments={0: (OURS,)})])
        with Producer(bootstrap_servers=cluster.address) as producer:
            for _ in range(50):
                producer.send("slowly", os.urandom(100_000), partition=0)
        began = time.monotonic()
        reassign(cluster, tools, tmp_path, "slowly", [OURS, OTHER], 0, "--throttle", "200000")
        # 5 MB at 200 kB/s, of which eleven seconds' worth may be fetched at once, plus one fetch. Otherwise it takes
        # one second.
        assert time.monotonic() - began > 6

        def is_lifted() -> bool:
            configs = admin.describe_configs([topic])[topic].items()
            return not any(each.value for name, each in configs if "throttled" in name)

        wait_for(is_lifted, "the tool lifts the throttle when the move is done")
    assert cluster.nodes[OTHER].log("slowly-0") == cluster.nodes[OURS].log("slowly-0")


def test_a_reassignment_that_kafkas_tool_cancels_leaves_no_files(
    cluster: Cluster, tools: Tools, tmp_path: Path
) -> None:
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("called-off", replica_assignments={0: (KAFKA,)})])
    with Producer(bootstrap_servers=cluster.address) as producer:
        for _ in range(100):
            producer.send("called-off", os.urandom(100_000), partition=0)
    command = reassigning(cluster, tmp_path, "called-off", [OURS])
    copy = cluster.nodes[OURS].data / "called-off-0"
    assert tools.run(*command, "--execute", "--throttle", "1000").status == 0
    wait_for(copy.exists, "ours begins a copy")
    assert tools.run(*command, "--cancel").status == 0
    wait_for(lambda: not copy.exists(), "ours keeps a copy")
    state = cluster.view.state("called-off")
    assert state is not None
    assert (state.replicas, state.isr, state.adding_replicas) == ((KAFKA,), (KAFKA,), ())


def test_a_deleted_topic_is_removed_from_all_its_brokers(cluster: Cluster) -> None:
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("passing", replica_assignments={0: (OURS, OTHER, KAFKA)})])
        with Producer(bootstrap_servers=cluster.address) as producer:
            producer.send("passing", value=b"1").result(PATIENCE)
        admin.delete_topics(["passing"])
    folders = [node.data / "passing-0" for node in cluster.nodes.values()]
    wait_for(lambda: not any(folder.exists() for folder in folders), "a folder is left")


@pytest.mark.behaviour("B4")
@pytest.mark.behaviour("P3")
def test_no_record_is_lost_or_repeated_when_any_broker_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("java", replica_assignments=dict(enumerate(TOPICS.values())))])
    with cluster.writer(list(TOPICS)) as writer, JavaWriter(cluster.address, "java", tmp_path) as java:
        writer.go_on()
        cluster.settle({})
        for victim in (OURS, KAFKA, OTHER):
            cluster.nodes[victim].kill()
            writer.go_on()
            cluster.restart(victim)
            for topic, replicas in TOPICS.items():
                cluster.wait_in_sync(topic, replicas)
            writer.go_on()
            java.go_on()
    assert not writer.failed
    assert not java.list_events("producer_send_error")
    cluster.settle(TOPICS)
    for topic in TOPICS:
        assert read(cluster.address, topic) == list(range(writer.count))
    by_partition = [read(cluster.address, "java", partition=each) for each in range(len(TOPICS))]
    assert all(numbers == sorted(numbers) for numbers in by_partition)
    acknowledged = java.list_events("producer_send_success")
    assert sorted(chain.from_iterable(by_partition)) == sorted(number for _, _, number in acknowledged)
    assert all(by_partition[partition][offset] == number for partition, offset, number in acknowledged)


def served(node: Node, client_id: str) -> int:
    """Return the bytes of fetch responses to a client, from the broker's request log."""
    lines = (node.data.parent / "requests").read_text().splitlines()
    requests = [json.loads(line) for line in lines if client_id in line]
    return sum(each["response_bytes"] for each in requests if each["api"] == "Fetch")


def read_by_librdkafka(address: str, topic: str, client_id: str, rack: str, count: int) -> list[int]:
    settings = {"bootstrap.servers": address, "group.id": client_id, "client.id": client_id, "client.rack": rack}
    consumer = ck.Consumer({**settings, "enable.auto.commit": False})
    found: list[int] = []
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += [int(message.value() or b"") for message in consumer.consume(100, 0.5)]
    finally:
        consumer.close()
    return found


def read_by_ours(address: str, topic: str, client_id: str, rack: str, count: int) -> list[int]:
    place = TopicPartition(topic, 0)
    found: list[int] = []
    with Consumer(bootstrap_servers=address, client_id=client_id, client_rack=rack) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += [int(record.value or b"") for record in consumer.poll(0.5)]
    return found


@pytest.mark.parametrize("leader", [OURS, KAFKA])
def test_consumers_read_from_the_replica_in_their_rack_with_either_leader(cluster: Cluster, leader: int) -> None:
    topic, size = f"near-{leader}", 2000
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: (leader, OTHER)})])
    wait_for(lambda: cluster.view.in_sync(topic) == {leader, OTHER})
    with Producer(bootstrap_servers=cluster.address) as producer:
        for number in range(50):
            producer.send(topic, value=b"%0*d" % (size, number))
    for name, by in (("rdkafka", read_by_librdkafka), ("ours", read_by_ours)):
        for rack, expects in (("b", True), ("elsewhere", False)):
            client_id = f"{name}-{rack}-{leader}"
            assert by(cluster.address, topic, client_id, rack, 50) == list(range(50))

            def near(client_id: str = client_id) -> int:
                return served(cluster.nodes[OTHER], client_id)

            if expects:  # the line is written after the response is sent
                wait_for(lambda: near() > 50 * size, client_id)
            else:
                assert not near(), client_id


def test_deleted_records_are_removed_from_all_replicas_before_the_response(
    cluster: Cluster, tools: Tools, tmp_path: Path
) -> None:
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic("shorter", replica_assignments={0: (OURS, OTHER, KAFKA)})])
    wait_for(lambda: cluster.view.in_sync("shorter") == {OURS, OTHER, KAFKA})
    with Producer(bootstrap_servers=cluster.address) as producer:
        for number in range(10):
            producer.send("shorter", value=b"%d" % number)
    plan = tmp_path / "delete.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "shorter", "partition": 0, "offset": 4}]}))
    at = ("--bootstrap-server", cluster.address, "--offset-json-file", plan)
    said = tools.run("DeleteRecordsCommand", *at).text
    assert "low_watermark: 4" in said, said
    reassign(cluster, tools, tmp_path, "shorter", [OTHER, OURS, KAFKA])
    elect(cluster, tools, "shorter", OURS, OTHER)
    assert read(cluster.address, "shorter") == list(range(4, 10))


def test_unreplicated_records_of_a_killed_leader_are_truncated_after_its_restart(cluster: Cluster) -> None:
    topics = {f"{topic}-tail": replicas for topic, replicas in TOPICS.items()}
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: each}) for topic, each in topics.items()])
    for leader in (OURS, KAFKA):
        led = {topic: replicas for topic, replicas in topics.items() if replicas[0] == leader}
        with Producer(bootstrap_servers=cluster.address, acks="1") as producer:
            wait_for(lambda: all(cluster.view.in_sync(topic) == set(replicas) for topic, replicas in led.items()))  # noqa: B023
            for topic in led:
                producer.send(topic, value=b"1").result(PATIENCE)
            wait_for(lambda: all(len(set(cluster.copies(*each))) == 1 for each in led.items()))  # noqa: B023
            followers = {replicas[1] for replicas in led.values()}
            for each in followers:
                cluster.nodes[each].freeze()
            # The response to the stopped follower may contain the first record. It has received nothing about the
            # second.
            for value in (b"2", b"9"):
                for topic in led:
                    producer.send(topic, value=value).result(PATIENCE)
            cluster.nodes[leader].kill()
            for each in followers:
                cluster.nodes[each].thaw()
            wait_for(lambda: all(cluster.view.leader(topic) == each[1] for topic, each in led.items()))  # noqa: B023
            for topic in led:
                producer.send(topic, value=b"3").result(PATIENCE)
        cluster.restart(leader)
        cluster.settle(led)
        for topic in led:
            assert read(cluster.address, topic) in ([1, 3], [1, 2, 3])


def test_a_lost_disk_is_restored_from_the_other_replicas(cluster: Cluster) -> None:
    topics = {"refilled": (KAFKA, OURS), "handed-over": (OURS, OTHER)}
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: each}) for topic, each in topics.items()])
    for topic, replicas in topics.items():
        cluster.wait_in_sync(topic, replicas)
    with cluster.writer(list(topics)) as writer:
        writer.go_on()
        cluster.nodes[OURS].kill()
        cluster.nodes[OURS].lose_disk()
        cluster.restart(OURS)
        writer.go_on()
    cluster.settle(topics)
    assert not writer.failed
    assert cluster.view.leader("handed-over") == OTHER
    for topic in topics:
        assert read(cluster.address, topic) == list(range(writer.count))


def test_writes_and_reads_continue_while_the_only_controller_is_paused(
    cluster: Cluster, kafka_cluster: ApacheKafka
) -> None:
    topic = {"led-on": (OURS, OTHER)}
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics(
            [NewTopic("led-on", replica_assignments={0: topic["led-on"]}, configs={"min.insync.replicas": "2"})]
        )
    cluster.settle(topic)
    ours = cluster.nodes[OURS].address
    with cluster.writer(list(topic), ours) as writer:
        writer.go_on()
        os.kill(kafka_cluster.process, signal.SIGSTOP)
        try:
            until = time.monotonic() + 1.5 * SESSION_SECONDS
            while time.monotonic() < until:
                writer.go_on()
            assert len(read(ours, "led-on")) > 100
        finally:
            os.kill(kafka_cluster.process, signal.SIGCONT)
        writer.go_on(1000)
    cluster.settle(topic)
    assert not writer.failed
    assert read(ours, "led-on") == list(range(writer.count))


@pytest.mark.parametrize("victims", [(OURS, OTHER), pytest.param((OURS, KAFKA, KAFKA, KAFKA), marks=pytest.mark.long)])
def test_transactions_over_all_brokers_are_atomic_when_any_broker_is_killed(
    cluster: Cluster, tmp_path: Path, victims: tuple[int, ...]
) -> None:
    by_client = {
        who: {f"{topic}-{who}-{victims[-1]}": each for topic, each in TOPICS.items()} for who in ("librdkafka", "Java")
    }
    with Admin(bootstrap_servers=cluster.address) as admin:
        for topics in by_client.values():
            admin.create_topics([NewTopic(topic, replica_assignments={0: each}) for topic, each in topics.items()])
    with (
        Transactor(cluster.address, list(by_client["librdkafka"]), "librdkafka") as librdkafkas,
        JavaTransactor(cluster.address, list(by_client["Java"]), "Java", tmp_path) as javas,
    ):
        librdkafkas.go_on()
        javas.go_on()
        for victim in victims:
            cluster.nodes[victim].kill()
            cluster.restart(victim)
            librdkafkas.go_on()
            javas.go_on()
    transactors: tuple[Transactor | JavaTransactor, ...] = librdkafkas, javas
    for transactor, topics in zip(transactors, by_client.values(), strict=True):
        assert not transactor.failed
        assert transactor.aborted > 2
        cluster.settle(topics)
        for topic in topics:
            everything = read(cluster.address, topic)
            committed = read(cluster.address, topic, isolation_level="read_committed")
            assert committed == list(range(transactor.count))
            assert len(everything) > len(committed)


def test_a_broker_adds_partitions_to_the_transaction_of_our_producer(cluster: Cluster) -> None:
    topics = {f"{topic}-ours": replicas for topic, replicas in TOPICS.items()}
    with Admin(bootstrap_servers=cluster.address) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: each}) for topic, each in topics.items()])
    with Producer(bootstrap_servers=cluster.address, transactional_id="ours") as producer:
        producer.init_transactions(PATIENCE)
        for number in range(12):
            producer.begin_transaction()
            for topic in topics:
                producer.send(topic, b"%d" % number, partition=0)
            (producer.abort_transaction if number % 3 == 0 else producer.commit_transaction)(PATIENCE)
    for topic in topics:
        committed = read(cluster.address, topic, isolation_level="read_committed")
        assert committed == [number for number in range(12) if number % 3]


def test_the_checker_finds_no_error_while_brokers_are_killed(cluster: Cluster) -> None:
    plan = replace(planned(600, steps=10), crashes=(Crash(KILLED, 60), Crash(KILLED, 60)))
    counts = {"in": len(plan.sources), "out": len(plan.targets)}
    copies = list(TOPICS.values())

    def settle() -> None:
        for topic, count in counts.items():
            for partition in range(count):
                cluster.wait_in_sync(topic, copies[partition % len(copies)], partition)

    victim = MixedVictim(cluster.address, [cluster.nodes[OURS], cluster.nodes[KAFKA]], settle)
    events = play(plan, victim, copies)
    assert verdict(events) == []
    assert not [event for event in events if isinstance(event, GivenUp)]
    assert victim.deaths  # Kafka's process too, if it was still working
    assert sum(isinstance(event, Ended) for event in events) > 10
