"""A broker of ours in a cluster of each version of Apache Kafka: it leads, follows and coordinates.

`test_cluster*.py` have more of this, with the reference version alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from interop.kafka_places import PREVIOUS, REFERENCE, VERSIONS, KafkaVersion, fetch
from ottla import Admin, Consumer, NewTopic, Producer, ShareConsumer, TopicPartition
from ottla.client.admin import ConfigResource
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from rivals.apache_kafka import ApacheKafka
from rivals.kafka_cluster import OttlaNode, View, kafka_node, wait_for
from tests.broker.wire import Wire

KAFKA, OURS = 1, 7
COUNT = 500
LEVELS = {
    REFERENCE.release: {
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    },
    PREVIOUS.release: {
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    },
}
"""Release → the levels of a new cluster."""


class Joined(NamedTuple):
    """A cluster of Kafka with a broker of ours."""

    version: KafkaVersion
    kafka: ApacheKafka
    ours: OttlaNode

    @property
    def servers(self) -> str:
        return f"{self.kafka.bootstrap_servers},{self.ours.address}"


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: version.release)
def joined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    fetch(request.param)
    with kafka_node(request.param.jars) as kafka:
        ours = OttlaNode(OURS, kafka, tmp_path_factory.mktemp("ours"))
        ours.start()
        try:
            ours.wait_until_in()
            yield Joined(request.param, kafka, ours)
        finally:
            ours.stop()


@pytest.fixture
def admin(joined: Joined) -> Iterator[Admin]:
    with Admin(bootstrap_servers=joined.ours.address) as admin:
        yield admin


def write(joined: Joined, topic: str, partition: int) -> None:
    with Producer(bootstrap_servers=joined.servers, acks="all", enable_idempotence=True) as producer:
        sent = [producer.send(topic, b"%d" % number, partition=partition) for number in range(COUNT)]
        for each in sent:
            each.result(60)


def read_all(consumer: Consumer) -> list[Any]:
    """Read until as many records as were written have come, and return their values."""
    read: list[Any] = []

    def has_all() -> bool:
        read.extend(each.value for each in consumer.poll(0.5))
        return len(read) >= COUNT

    wait_for(has_all, lambda: f"{len(read)} are read")
    return read


def test_it_joins_a_cluster_with_the_default_levels(joined: Joined, admin: Admin) -> None:
    levels = {name: each.max_version_level for name, each in admin.describe_features().finalized_features.items()}
    assert levels | LEVELS[joined.version.release] == levels
    assert {node.node_id for node in admin.describe_cluster().nodes} == {KAFKA, OURS}


@pytest.mark.parametrize("replicas", [(OURS, KAFKA), (KAFKA, OURS)], ids=["ours leads", "ours follows"])
def test_it_leads_and_follows(joined: Joined, admin: Admin, replicas: tuple[int, int]) -> None:
    topic = f"flights-{replicas[0]}"
    admin.create_topics([NewTopic(topic, replica_assignments={0: replicas}, configs={"min.insync.replicas": "2"})])
    view = View(joined.kafka)
    wait_for(lambda: view.leader(topic) == replicas[0] and view.in_sync(topic) == {KAFKA, OURS}, "both are in sync")
    write(joined, topic, 0)
    with Consumer(bootstrap_servers=joined.servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        read = read_all(consumer)
    assert read == [b"%d" % number for number in range(COUNT)]
    assert view.in_sync(topic) == {KAFKA, OURS}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_it_coordinates_a_group(joined: Joined, admin: Admin, protocol: str) -> None:
    topic, group = f"to-read-{protocol}", f"readers-{protocol}"
    move_coordinators(joined, admin)
    admin.create_topics([NewTopic(topic, replica_assignments={0: (KAFKA,)})])
    write(joined, topic, 0)
    settings = {"bootstrap.servers": joined.servers, "group.id": group, "group.protocol": protocol}
    with Consumer(settings | {"auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        read_all(consumer)
        consumer.commit()
    (committed,) = admin.list_consumer_group_offsets(group).values()
    assert committed.offset == COUNT


def move_coordinators(joined: Joined, admin: Admin) -> None:
    """Move the partitions of the group coordinator to our broker."""
    topic = "__consumer_offsets"
    with Wire(joined.kafka.bootstrap_servers) as wire:
        wait_for(lambda: wire.ask(FindCoordinatorRequest("any", 0), 2).error_code == ErrorCode.NONE, "the topic exists")
        count = len(admin.describe_topics([topic])[topic].partitions)
        admin.alter_partition_reassignments({TopicPartition(topic, number): [OURS] for number in range(count)})
        wait_for(lambda: not admin.list_partition_reassignments(), "the coordinator moves")
        wait_for(lambda: wire.ask(FindCoordinatorRequest("any", 0), 2).node_id == OURS, "ours coordinates")


def test_it_delivers_to_share_groups(joined: Joined, admin: Admin) -> None:
    admin.create_topics([NewTopic("shared", replica_assignments={0: (OURS,)})])
    admin.alter_configs({ConfigResource("group", "sharers"): {"share.auto.offset.reset": "earliest"}})
    write(joined, "shared", 0)
    with ShareConsumer({"bootstrap.servers": joined.servers, "group.id": "sharers"}) as consumer:
        consumer.subscribe(["shared"])
        read: set[int] = set()

        def has_all() -> bool:
            read.update(each.offset for each in consumer.poll(0.5))
            return len(read) >= COUNT

        wait_for(has_all, "all are delivered")
    assert read == set(range(COUNT))


def test_a_request_that_older_controllers_do_not_know_is_answered(joined: Joined, admin: Admin) -> None:
    with pytest.raises(OttlaError) as refused:
        admin.unregister_controller(99)
    if joined.version == REFERENCE:
        assert isinstance(refused.value, KafkaError)
        assert refused.value.code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED
