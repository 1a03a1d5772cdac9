"""A consumer that shares a group with consumers of other clients. It prints what it owns, reads and commits.

python -m interop.mixed_member confluent|kafka_python|aiokafka|ours|confluent_newer|ours_newer ADDRESS TOPIC GROUP

Each line begins with the machine's monotonic time in ns, which is the same for all processes: `TIME owned 0 3`,
`TIME got PARTITION OFFSET`, `TIME committed PARTITION NEXT`. Members of the classic protocol use the round robin
assignor, which every client implements. In KIP-848 groups the broker assigns the partitions.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from interop.group_member import learn

SESSION_MS = 2000
BEAT_MS = 100
POLL_MS = 5000


def print_event(*words: object) -> None:
    print(time.monotonic_ns(), *words, flush=True)


def owned(partitions: Iterable[int]) -> None:
    print_event("owned", *sorted(partitions))


class Owned:
    """The partitions of a member that receives incremental assignments and revocations."""

    def __init__(self) -> None:
        self._partitions: set[int] = set()

    def add(self, partitions: Iterable[Any]) -> None:
        self._partitions.update(each.partition for each in partitions)
        owned(self._partitions)

    def remove(self, partitions: Iterable[Any]) -> None:
        self._partitions.difference_update(each.partition for each in partitions)
        owned(self._partitions)


def confluent(address: str, topic: str, group: str) -> None:
    timing = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": BEAT_MS}
    consume_by_confluent(address, topic, group, {"partition.assignment.strategy": "roundrobin", **timing})


def confluent_newer(address: str, topic: str, group: str) -> None:
    consume_by_confluent(address, topic, group, {"group.protocol": "consumer"})


def consume_by_confluent(address: str, topic: str, group: str, settings: dict[str, Any]) -> None:
    import confluent_kafka as ck

    place = {"bootstrap.servers": address, "group.id": group, "max.poll.interval.ms": POLL_MS}
    consumer = ck.Consumer({**place, **settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    has = Owned()
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: has.add(partitions),
        on_revoke=lambda _, partitions: has.remove(partitions),
        on_lost=lambda _, partitions: has.remove(partitions),
    )
    while True:
        ends: dict[int, int] = {}
        for each in consumer.consume(100, 0.05):
            if not each.error():
                partition, offset = each.partition() or 0, each.offset() or 0
                print_event("got", partition, offset)
                ends[partition] = offset + 1
        for partition, end in ends.items():
            try:
                consumer.commit(offsets=[ck.TopicPartition(topic, partition, end)], asynchronous=False)
                print_event("committed", partition, end)
            except ck.KafkaException:
                pass  # the partition has another owner by now


def kafka_python(address: str, topic: str, group: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

    class Teller(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
            owned(())

        def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
            owned(each.partition for each in assigned)

    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=BEAT_MS,
        max_poll_interval_ms=POLL_MS,
    )
    learn(consumer, topic)
    consumer.subscribe([topic], listener=Teller())
    while True:
        polled = consumer.poll(50)
        for records in polled.values():
            for each in records:
                print_event("got", each.partition, each.offset)
        for partition, records in polled.items():
            end = records[-1].offset + 1
            try:
                consumer.commit({partition: OffsetAndMetadata(end, "", -1)})
                print_event("committed", partition.partition, end)
            except KafkaError:
                pass  # the partition has another owner by now


def aiokafka(address: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.errors import KafkaError

    class Teller(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
            owned(())

        async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
            owned(each.partition for each in assigned)

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=BEAT_MS,
            max_poll_interval_ms=POLL_MS,
        )
        consumer.subscribe([topic], listener=Teller())
        await consumer.start()
        while True:
            polled = await consumer.getmany(timeout_ms=50)
            for records in polled.values():
                for each in records:
                    print_event("got", each.partition, each.offset)
            for partition, records in polled.items():
                end = records[-1].offset + 1
                try:
                    await consumer.commit({partition: end})
                    print_event("committed", partition.partition, end)
                except KafkaError:
                    pass  # the partition has another owner by now

    asyncio.run(consume())


def ours(address: str, topic: str, group: str) -> None:
    timing = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": BEAT_MS}
    consume_by_ours(address, topic, group, {"partition.assignment.strategy": "roundrobin", **timing})


def ours_newer(address: str, topic: str, group: str) -> None:
    consume_by_ours(address, topic, group, {"group.protocol": "consumer"})


def consume_by_ours(address: str, topic: str, group: str, settings: dict[str, Any]) -> None:
    from ottla import Consumer, TopicPartition
    from ottla.errors import KafkaError

    consumer = Consumer(
        settings,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_interval_ms=POLL_MS,
    )
    has = Owned()
    consumer.subscribe([topic], on_assigned=has.add, on_revoked=has.remove, on_lost=has.remove)
    while True:
        ends: dict[TopicPartition, int] = {}
        for each in consumer.poll(0.05):
            print_event("got", each.partition, each.offset)
            ends[TopicPartition(topic, each.partition)] = each.offset + 1
        for place, end in ends.items():
            try:
                consumer.commit({place: end})
                print_event("committed", place.partition, end)
            except KafkaError:
                pass  # the partition has another owner by now


CLIENTS: dict[str, Callable[[str, str, str], None]] = {
    "confluent": confluent,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
    "ours": ours,
    "confluent_newer": confluent_newer,
    "ours_newer": ours_newer,
}

if __name__ == "__main__":
    CLIENTS[sys.argv[1]](*sys.argv[2:])
