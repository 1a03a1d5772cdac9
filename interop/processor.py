"""Consume, process and produce exactly once with a foreign client, until the process is killed.

python -m interop.processor confluent|kafka_python|aiokafka ADDRESS SOURCE TARGET GROUP

Every error ends the process. Its successor under the same transactional id continues at the committed offset.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count

from interop.group_member import learn

SESSION_MS = 2000
BEAT_MS = 200
TRANSACTION_MS = 10_000
BATCH = 200
"""The maximum number of records in a transaction."""
ABORTED = 5
"""One transaction in this number is aborted and repeated."""
PATIENCE = 20


def confluent(address: str, source: str, target: str, group: str) -> None:
    import confluent_kafka as ck

    # Otherwise it forgets a lost broker, and waits forever for the group coordinator on that broker (2.16).
    place = {"bootstrap.servers": address, "metadata.recovery.strategy": "none"}
    place["reconnect.backoff.max.ms"] = str(BEAT_MS)
    producer = ck.Producer({**place, "transactional.id": group, "transaction.timeout.ms": TRANSACTION_MS})
    # A fixed id, so that the next process does not wait for the session timeout of the previous one.
    timing = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": BEAT_MS, "group.instance.id": group}
    start = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = ck.Consumer({**place, **timing, **start, "group.id": group})
    producer.init_transactions(PATIENCE)
    consumer.subscribe([source])
    numbers = count(1)
    heard = time.monotonic()
    while True:
        messages = [each for each in consumer.consume(BATCH, 0.05) if not each.error()]
        if not messages:
            # Sometimes it requests the group coordinator, receives it, and requests it again, forever (2.16).
            assert time.monotonic() < heard + PATIENCE / 2, "nothing comes"
            continue
        heard = time.monotonic()
        producer.begin_transaction()
        for each in messages:
            producer.produce(target, each.value(), each.key(), each.partition() or 0)
        positions = consumer.position(consumer.assignment())
        if next(numbers) % ABORTED == 0:
            producer.abort_transaction(PATIENCE)
            for place_ in consumer.committed(consumer.assignment(), PATIENCE):
                place_.offset = max(place_.offset, 0)
                consumer.seek(place_)
            continue
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), PATIENCE)
        producer.commit_transaction(PATIENCE)


def kafka_python(address: str, source: str, target: str, group: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.structs import OffsetAndMetadata

    producer = KafkaProducer(
        bootstrap_servers=address, transactional_id=group, transaction_timeout_ms=TRANSACTION_MS, linger_ms=5
    )
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=BEAT_MS,
        max_poll_interval_ms=PATIENCE * 1000,
        max_poll_records=BATCH,
    )
    # Sometimes it receives the transaction coordinator, sends no further request, and waits forever (3.0.12).
    signal.alarm(PATIENCE)
    learn(consumer, source)
    producer.init_transactions()
    numbers = count(1)
    while True:
        polled = consumer.poll(50)
        if not polled:
            continue
        signal.alarm(PATIENCE)
        producer.begin_transaction()
        for partition, records in polled.items():
            for each in records:
                producer.send(target, each.value, key=each.key, partition=partition.partition)
        if next(numbers) % ABORTED == 0:
            producer.abort_transaction()
            for partition in consumer.assignment():
                consumer.seek(partition, consumer.committed(partition) or 0)
            continue
        ends = {partition: OffsetAndMetadata(records[-1].offset + 1, "", -1) for partition, records in polled.items()}
        producer.send_offsets_to_transaction(ends, consumer.group_metadata())
        producer.commit_transaction()


def aiokafka(address: str, source: str, target: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def process() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address, transactional_id=group, transaction_timeout_ms=TRANSACTION_MS
        )
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=BEAT_MS,
            max_poll_records=BATCH,
        )
        await producer.start()
        await consumer.start()
        numbers = count(1)
        while True:
            polled = await consumer.getmany(timeout_ms=50)
            if not polled:
                continue
            await producer.begin_transaction()
            for partition, records in polled.items():
                for each in records:
                    await producer.send(target, each.value, key=each.key, partition=partition.partition)
            if next(numbers) % ABORTED == 0:
                await producer.abort_transaction()
                for partition in consumer.assignment():
                    consumer.seek(partition, await consumer.committed(partition) or 0)
                continue
            ends = {partition: records[-1].offset + 1 for partition, records in polled.items()}
            await producer.send_offsets_to_transaction(ends, group)
            await producer.commit_transaction()

    asyncio.run(process())


CLIENTS: dict[str, Callable[[str, str, str, str], None]] = {
    "confluent": confluent,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    try:
        CLIENTS[sys.argv[1]](*sys.argv[2:])
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)  # no thread waits for a broker that is down
