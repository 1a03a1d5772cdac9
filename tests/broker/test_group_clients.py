"""Other people's consumers share topics: here in one process, in interop/ with processes that are killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import confluent_kafka as ck
import kafka
import pytest
from aiokafka import AIOKafkaConsumer

from ottla.broker.embedding.embedded_broker import Broker
from tests.broker.membership import committed
from tests.broker.wire import Wire

DEADLINE = 60.0
PARTITIONS = 2
BEAT_MS = 50
"""Members learn of a rebalance from their next heartbeat."""


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker(group_min_session_timeout_ms=100) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", PARTITIONS)
        for partition in range(PARTITIONS):
            wire.produce("t", *(b"%d" % number for number in range(10)), partition=partition)
        yield broker.bootstrap_servers


def by_confluent(servers: str) -> ck.Consumer:
    consumer = ck.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 5000,
            "heartbeat.interval.ms": BEAT_MS,
        }
    )
    consumer.subscribe(["t"])
    return consumer


def owned(consumer: ck.Consumer) -> set[int]:
    consumer.poll(0.02)
    return {each.partition for each in consumer.assignment()}


def poll_until(condition: Callable[[], bool]) -> None:
    """Poll, as the condition does, until it is true."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"


@pytest.mark.behaviour("C14")
def test_a_partition_has_one_owner_and_a_surplus_member_takes_over(servers: str) -> None:
    with ExitStack() as undo:
        consumers = [by_confluent(servers) for _ in range(PARTITIONS + 1)]
        for consumer in consumers:
            undo.callback(consumer.close)

        found: list[set[int]] = []

        def shared() -> bool:
            found[:] = [owned(consumer) for consumer in consumers]
            return sorted(map(len, found)) == [0, 1, 1] and set().union(*found) == {0, 1}

        poll_until(shared)
        leaver = next(consumer for consumer, partitions in zip(consumers, found, strict=True) if partitions)
        leaver.close()
        rest = [consumer for consumer in consumers if consumer is not leaver]
        poll_until(lambda: sorted(sorted(owned(consumer)) for consumer in rest) == [[0], [1]])


def test_kafka_python_joins_commits_leaves_and_continues_from_its_commit(servers: str) -> None:
    with ExitStack() as undo:

        def consumer() -> kafka.KafkaConsumer:
            found = kafka.KafkaConsumer(
                "t",
                bootstrap_servers=servers,
                group_id="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=5000,
                heartbeat_interval_ms=BEAT_MS,
            )
            undo.callback(found.close)
            # A leader of kafka-python that does not know a topic yet assigns none of its partitions, and does not repeat that.
            found.partitions_for_topic("t")
            return found

        first = consumer()
        count = 0
        while count < 10 * PARTITIONS:
            count += sum(len(records) for records in first.poll(DEADLINE * 1000).values())
        first.commit()
        first.close()
        second = consumer()
        poll_until(lambda: bool(second.poll(20) or second.assignment()))
        assert [second.position(each) for each in sorted(second.assignment())] == [10, 10]
    with Wire(servers) as wire:
        assert committed(wire) == 10


def test_aiokafka_members_share_partitions_and_take_over(servers: str) -> None:
    def consumer() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            "t",
            bootstrap_servers=servers,
            group_id="g",
            auto_offset_reset="earliest",
            session_timeout_ms=5000,
            heartbeat_interval_ms=BEAT_MS,
        )

    async def share() -> None:
        first, second = consumer(), consumer()
        await asyncio.gather(first.start(), second.start())
        try:
            while {len(first.assignment()), len(second.assignment())} != {1}:
                await asyncio.gather(first.getmany(timeout_ms=20), second.getmany(timeout_ms=20))
            assert first.assignment().isdisjoint(second.assignment())
            await first.stop()
            while len(second.assignment()) < PARTITIONS:
                await second.getmany(timeout_ms=20)
        finally:
            await first.stop()
            await second.stop()

    asyncio.run(asyncio.wait_for(share(), DEADLINE))
