"""A cluster of controllers and brokers of ours loses and repeats no record when one process is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ottla.client.producer import Producer
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from tests.broker.cluster_nodes import BrokerPlace, counted, is_led, make_topic, partitions_of
from tests.broker.quorum_nodes import Place, leader_of, new_hosts
from tests.patience import eventually

BROKERS = 101, 102
SHORT = {"broker_session_timeout_ms": "2000"}
EACH = 500


@contextmanager
def cluster(folder: Path, controllers: int) -> Iterator[tuple[list[Place], list[BrokerPlace]]]:
    """Start the controllers, and two registered brokers."""
    hosts = new_hosts(controllers + len(BROKERS))
    voters = [Place(folder, id_, host, **SHORT) for id_, host in enumerate(hosts[:controllers], 1)]
    for each in voters:
        each.format([voter.voter for voter in voters])
    brokers = [BrokerPlace(folder, id_, host, voters) for id_, host in zip(BROKERS, hosts[controllers:], strict=True)]
    with ExitStack() as undo:
        for each in (*voters, *brokers):
            undo.callback(each.kill)
        for each in (*voters, *brokers):
            each.start()
        yield voters, brokers


def produce(producer: Producer, first: int) -> Counter[bytes]:
    """Send `EACH` consecutive numbers and wait for each acknowledgement."""
    values = [str(number).encode() for number in range(first, first + EACH)]
    for each in [producer.send("flights", value) for value in values]:
        each.result(60)
    return Counter(values)


def make_flights(broker: BrokerPlace, min_insync: int = 1) -> None:
    make_topic(
        broker,
        CreatableTopic("flights", 4, 2, configs=[CreatableTopicConfig("min.insync.replicas", str(min_insync))]),
    )
    eventually(lambda: is_led(broker, "flights", in_sync=2))


@pytest.mark.behaviour("B5")
def test_a_killed_broker_is_replaced_by_the_other_and_rejoins(tmp_path: Path) -> None:
    with cluster(tmp_path, 1) as (_, (one, other)):
        make_flights(one)
        assert {each.leader_id for each in partitions_of(one, "flights")} == set(BROKERS)
        servers = f"{one.address},{other.address}"
        with Producer({"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True}) as producer:
            sent = produce(producer, 0)
            one.kill()
            sent += produce(producer, EACH)
            eventually(lambda: is_led(other, "flights", leader=other.node_id))
            one.start()
            eventually(lambda: is_led(other, "flights", in_sync=2))
            sent += produce(producer, 2 * EACH)
        assert counted(servers, "flights", sent.total()) == sent


@pytest.mark.behaviour("B5")
def test_a_killed_controller_is_replaced_by_another_with_the_same_metadata(tmp_path: Path) -> None:
    with cluster(tmp_path, 3) as (voters, (one, other)):
        make_flights(one, min_insync=2)
        servers = f"{one.address},{other.address}"
        eventually(lambda: leader_of(voters))
        active = leader_of(voters) or voters[0]
        with Producer({"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True}) as producer:
            sent = produce(producer, 0)
            active.kill()
            sent += produce(producer, EACH)
            make_topic(other, CreatableTopic("after", 2, 2))
            eventually(lambda: is_led(one, "after", in_sync=2))
            active.start()
            eventually(lambda: leader_of(voters))
            sent += produce(producer, 2 * EACH)
        assert counted(servers, "flights", sent.total()) == sent
