"""Ottla's producer and consumer, one record at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from interop.rows import Row
from ottla import Consumer, Producer, TopicPartition

PATIENCE = 30.0


def produce(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    with Producer({"bootstrap.servers": address, "compression.type": codec}, linger_ms=20) as producer:
        futures = [
            producer.send(topic, row.value, key=row.key, partition=0, timestamp=row.timestamp, headers=row.headers)
            for row in rows
        ]
        for future in futures:
            future.result(PATIENCE)


def consume(address: str, topic: str, count: int) -> list[Row]:
    rows: list[Row] = []
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        deadline = time.monotonic() + PATIENCE
        while len(rows) < count and time.monotonic() < deadline:
            rows += [
                Row(r.key, r.value, tuple((name, value or b"") for name, value in r.headers), r.timestamp)
                for r in consumer.poll(0.2)
            ]
    return rows
