"""A consumer of a foreign client in a process that may be killed. It prints one line for each change of its
assignment.

python -m interop.group_member confluent|confluent_848|kafka_python|aiokafka ADDRESS TOPIC GROUP
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

SESSION_MS = 2000
BEAT_MS = 100


def print_partitions(owned: list[int]) -> None:
    """Print the partitions of this member."""
    print(*sorted(owned), flush=True)


def confluent(address: str, topic: str, group: str) -> None:
    by_confluent(address, topic, group, {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": BEAT_MS})


def confluent_848(address: str, topic: str, group: str) -> None:
    """Create a KIP-848 consumer. The broker sets its heartbeat interval and session."""
    by_confluent(address, topic, group, {"group.protocol": "consumer"})


def by_confluent(address: str, topic: str, group: str, more: dict[str, object]) -> None:
    import confluent_kafka as ck

    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = ck.Consumer({**settings, **more, "auto.commit.interval.ms": 100})
    consumer.subscribe([topic])
    last = None
    while True:
        consumer.poll(0.05)
        owned = [each.partition for each in consumer.assignment()]
        if owned != last:
            print_partitions(owned)
            last = owned


def kafka_python(address: str, topic: str, group: str) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=BEAT_MS,
        auto_commit_interval_ms=100,
        max_poll_interval_ms=5000,
    )
    learn(consumer, topic)
    last = None
    while True:
        consumer.poll(50)
        owned = [each.partition for each in consumer.assignment()]
        if owned != last:
            print_partitions(owned)
            last = owned


def learn(consumer: Any, topic: str) -> None:
    """Wait until a consumer of kafka-python 3.0.12 knows its topic before it joins.

    A leader that discovers the topic after the first rebalance joins again. If the rejoin takes longer than one poll,
    it is lost: `_perform_assignment` makes `need_rejoin()` return False meanwhile, so no later poll uses the result of
    `_join_task`. The member then owns nothing, sends no heartbeat, and is removed from the group.
    """
    consumer.partitions_for_topic(topic)


def aiokafka(address: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=BEAT_MS,
            auto_commit_interval_ms=100,
            max_poll_interval_ms=5000,
        )
        await consumer.start()
        last = None
        while True:
            await consumer.getmany(timeout_ms=50)
            owned = [each.partition for each in consumer.assignment()]
            if owned != last:
                print_partitions(owned)
                last = owned

    asyncio.run(consume())


CLIENTS: dict[str, Callable[[str, str, str], None]] = {
    "confluent": confluent,
    "confluent_848": confluent_848,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    CLIENTS[sys.argv[1]](*sys.argv[2:])
