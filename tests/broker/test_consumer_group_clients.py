"""Librdkafka's consumers in consumer groups (KIP-848), and in groups that are upgraded to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import confluent_kafka as ck
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from tests.broker.membership import committed
from tests.broker.wire import Wire

DEADLINE = 60.0
PARTITIONS = 4
BEAT_MS = 50
RECORDS = 10


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(group_consumer_heartbeat_interval_ms=BEAT_MS, group_min_session_timeout_ms=100) as broker:
        yield broker


@pytest.fixture
def consumer(broker: Broker) -> Iterator[Callable[..., ck.Consumer]]:
    """Makes consumers, and closes them in the end."""
    with ExitStack() as undo, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", PARTITIONS)
        for partition in range(PARTITIONS):
            wire.produce("t", *(b"%d" % number for number in range(RECORDS)), partition=partition)

        def made(protocol: str = "consumer", topic: str = "t", **settings: object) -> ck.Consumer:
            classic = {"session.timeout.ms": 6000, "heartbeat.interval.ms": BEAT_MS} if protocol == "classic" else {}
            common = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
            found = ck.Consumer({**common, "group.protocol": protocol, **classic, **settings})
            undo.callback(found.close)
            found.subscribe([topic])
            return found

        yield made


def owned(consumer: ck.Consumer) -> set[int]:
    consumer.poll(0.01)
    return {each.partition for each in consumer.assignment()}


def shared_evenly(*consumers: ck.Consumer) -> bool:
    """True if each partition has one owner, and no member has two partitions more than another."""
    parts = [owned(each) for each in consumers]
    sizes = [len(part) for part in parts]
    return sum(sizes) == PARTITIONS == len(set().union(*parts)) and max(sizes) - min(sizes) <= 1


def until_shared(*consumers: ck.Consumer) -> None:
    deadline = time.monotonic() + DEADLINE
    while not shared_evenly(*consumers):
        assert time.monotonic() < deadline, [owned(each) for each in consumers]


@pytest.mark.behaviour("C14")
def test_members_share_partitions_and_take_over_from_a_leaving_member(consumer: Callable[..., ck.Consumer]) -> None:
    first = consumer()
    until_shared(first)
    second, third = consumer(), consumer()
    until_shared(first, second, third)
    second.close()
    until_shared(first, third)


def test_committed_records_are_not_read_again(consumer: Callable[..., ck.Consumer], broker: Broker) -> None:
    first = consumer()
    seen = [first.poll(DEADLINE) for _ in range(PARTITIONS * RECORDS)]
    assert all(record is not None and record.error() is None for record in seen)
    first.commit(asynchronous=False)
    first.close()
    second = consumer()
    until_shared(second)
    assert second.poll(0.1) is None
    with Wire(broker.bootstrap_servers) as wire:
        assert committed(wire) == RECORDS


@pytest.mark.behaviour("C12")
def test_a_returning_static_member_gets_its_previous_assignment(consumer: Callable[..., ck.Consumer]) -> None:
    first, second = consumer(**{"group.instance.id": "one"}), consumer(**{"group.instance.id": "two"})
    until_shared(first, second)
    had, other = owned(first), owned(second)
    first.close()
    assert owned(second) == other
    again = consumer(**{"group.instance.id": "one"})
    until_shared(again, second)
    assert (owned(again), owned(second)) == (had, other)


def test_a_pattern_subscription_gets_matching_topics(consumer: Callable[..., ck.Consumer], broker: Broker) -> None:
    first = consumer(topic="^t.*")
    until_shared(first)


def test_a_group_is_upgraded_to_the_other_protocol_and_downgraded(consumer: Callable[..., ck.Consumer]) -> None:
    old = consumer("classic")
    until_shared(old)
    new = consumer()
    until_shared(old, new)
    newer = consumer()
    until_shared(old, new, newer)
    old.close()
    until_shared(new, newer)
    old = consumer("classic")
    until_shared(old, new, newer)
    new.close()
    newer.close()
    until_shared(old)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_eager_and_cooperative_members_revoke_partitions_for_new_members(
    consumer: Callable[..., ck.Consumer], assignor: str
) -> None:
    old = [consumer("classic", **{"partition.assignment.strategy": assignor}) for _ in range(2)]
    until_shared(*old)
    new = consumer()
    until_shared(*old, new)
