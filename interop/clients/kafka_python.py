"""The client kafka-python, in plain Python."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from interop.rows import Row

PATIENCE = 30.0


def produce(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=address, compression_type=None if codec == "none" else codec, linger_ms=20
    )
    futures = [
        producer.send(topic, row.value, row.key, list(row.headers), partition=0, timestamp_ms=row.timestamp)
        for row in rows
    ]
    for future in futures:
        future.get(PATIENCE)
    producer.close()


def consume(address: str, topic: str, count: int) -> list[Row]:
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    rows: list[Row] = []
    deadline = time.monotonic() + PATIENCE
    while len(rows) < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=200).values():
            rows += [Row(r.key, r.value, tuple(map(tuple, r.headers)), r.timestamp) for r in records]
    consumer.close()
    return rows
