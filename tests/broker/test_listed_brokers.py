"""Brokers in Metadata after they have left: listed for some seconds, so that clients do not see a restarted one
disappear.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata.brokers import LISTED_SECONDS, Brokers
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.node import BrokerNode
from ottla.clock import ManualClock
from ottla.coordination.cluster.node_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.errors import ErrorCode
from ottla.model import INT32_MAX
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.broker.test_replicated_partitions import ME, OTHER, in_loop
from tests.broker.wire import Wire

LISTENER = "PLAINTEXT"
LIBRDKAFKA = "confluent-kafka-python"


class Story:
    """The metadata of two brokers, as a third has them, at a time that the test sets."""

    def __init__(self, folder: Path) -> None:
        config = LogConfig(segment_bytes=INT32_MAX)
        log = Log.open(folder / "__cluster_metadata-0", config, now_ms=0, clean=True)
        self.observed = ObservedMetadata(log, ManualClock())
        self.brokers = Brokers(self.observed)
        self.now = 0.0
        for broker in (ME, OTHER):
            self.register(broker, fenced=False)
        self.brokers.record_start(self.now)

    def register(self, broker: int, *, fenced: bool = True, port: int = 9092) -> None:
        place = [BrokerEndpoint(LISTENER, "h", port, 0)]
        self.observed.machine.replay(RegisterBrokerRecord(broker, broker_epoch=1, end_points=place, fenced=fenced))
        self.brokers.record_changes(self.now)

    def change(self, broker: int, *, fenced: int = 0, leaving: int = 0) -> None:
        record = BrokerRegistrationChangeRecord(broker, 1, fenced=fenced, in_controlled_shutdown=leaving)
        self.observed.machine.replay(record)
        self.brokers.record_changes(self.now)

    def leave(self, broker: int) -> None:
        """Stop a broker by a controlled shutdown."""
        self.change(broker, leaving=1)
        self.change(broker, fenced=1)

    @property
    def listed(self) -> list[int]:
        return [each.node_id for each in self.brokers.list_known(LISTENER, LIBRDKAFKA, self.now)]

    @property
    def alive(self) -> list[int]:
        return list(self.brokers.list_alive(LISTENER))


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_a_stopped_broker_is_listed_for_some_seconds_and_is_not_alive(story: Story) -> None:
    story.now = 100.0
    story.leave(OTHER)
    assert (story.listed, story.alive) == ([ME, OTHER], [ME])
    story.now += LISTED_SECONDS - 0.1
    assert story.listed == [ME, OTHER]
    story.now += 0.1
    assert story.listed == [ME]


def test_a_restarting_broker_is_always_listed_and_then_at_its_new_address(story: Story) -> None:
    story.leave(OTHER)
    story.register(OTHER, port=9999)
    assert [(each.node_id, each.port) for each in story.brokers.list_known(LISTENER, LIBRDKAFKA, story.now)][1] == (
        OTHER,
        9999,
    )
    story.change(OTHER, fenced=-1)
    story.now += 1000
    assert story.listed == story.alive == [ME, OTHER]


def test_a_broker_that_stops_again_is_listed_from_that_time_on(story: Story) -> None:
    story.leave(OTHER)
    story.register(OTHER)
    story.change(OTHER, fenced=-1)
    story.now += LISTED_SECONDS
    story.leave(OTHER)
    assert story.listed == [ME, OTHER]


def test_an_unregistered_broker_is_not_listed(story: Story) -> None:
    story.leave(OTHER)
    story.observed.machine.replay(UnregisterBrokerRecord(OTHER, 1))
    story.brokers.record_changes(story.now)
    assert story.listed == [ME]


def test_a_broker_that_was_never_unfenced_is_not_listed(story: Story) -> None:
    story.register(OTHER + 1)
    assert story.listed == [ME, OTHER]


def test_a_starting_broker_lists_the_brokers_stopped_before_for_the_same_time(story: Story) -> None:
    """They may be restarting, too, where all nodes of a cluster are restarted together."""
    story.leave(OTHER)
    story.register(OTHER + 1)
    started = Brokers(story.observed)
    assert [each.node_id for each in started.list_known(LISTENER, LIBRDKAFKA, 50.0)] == [ME], (
        "the metadata are not known yet"
    )
    started.record_start(50.0)
    assert [each.node_id for each in started.list_known(LISTENER, LIBRDKAFKA, 51.0)] == [ME, OTHER]
    assert [each.node_id for each in started.list_known(LISTENER, LIBRDKAFKA, 50.0 + LISTED_SECONDS)] == [ME]


@pytest.mark.parametrize("software", [LIBRDKAFKA, "librdkafka", "rdkafka-ruby", "confluent-kafka-go"])
def test_every_client_based_on_librdkafka_gets_stopped_brokers(story: Story, software: str) -> None:
    story.leave(OTHER)
    assert [each.node_id for each in story.brokers.list_known(LISTENER, software, story.now)] == [ME, OTHER]


@pytest.mark.parametrize("software", ["", "apache-kafka-java", "ottla", "kgo", "kafka-python"])
def test_other_clients_get_active_brokers_only(story: Story, software: str) -> None:
    """An admin client that queries every listed broker would wait for it until its timeout."""
    story.leave(OTHER)
    assert [each.node_id for each in story.brokers.list_known(LISTENER, software, story.now)] == [ME]


@pytest.fixture
def broker(story: Story) -> Iterator[Broker]:
    """One that knows the brokers of the story, of which one has just left."""
    with Broker(node_id=ME) as broker:

        def know(node: BrokerNode) -> None:
            node.brokers, story.now = story.brokers, node.clock.monotonic()

        with Wire(broker.bootstrap_servers) as wire:
            wire.create("t")
        in_loop(broker, know)
        story.leave(OTHER)
        yield broker


def test_stopped_brokers_are_listed_in_metadata_and_used_nowhere_else(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        assert [each.node_id for each in wire.metadata("t").brokers] == [ME]
        wire.ask(ApiVersionsRequest("librdkafka", "2.16.1"), 3)
        response = wire.metadata("t")
        assert [each.node_id for each in response.brokers] == [ME, OTHER]
        assert [each.broker_id for each in wire.ask(DescribeClusterRequest()).brokers] == [ME]
        fenced = wire.ask(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
        assert [(each.broker_id, each.is_fenced) for each in fenced] == [(ME, False), (OTHER, True)]
        assert wire.ask(FindCoordinatorRequest("g", 0), 2).node_id != OTHER


def test_partitions_led_by_a_stopped_broker_have_no_leader_in_metadata(broker: Broker) -> None:
    def hand_over(node: BrokerNode) -> None:
        topic = node.topics.find_by_name("t")
        assert topic is not None
        node._cluster.machine.replay(
            PartitionChangeRecord(0, topic.topic_id, leader=OTHER, replicas=[ME, OTHER], isr=[OTHER])
        )

    in_loop(broker, hand_over)
    with Wire(broker.bootstrap_servers) as wire:
        wire.ask(ApiVersionsRequest("librdkafka", "2.16.1"), 3)
        (partition,) = wire.metadata("t").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert list(partition.offline_replicas) == [OTHER]
