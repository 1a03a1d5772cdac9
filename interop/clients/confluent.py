"""The client confluent-kafka, a wrapper of librdkafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from interop.rows import Row

PATIENCE = 30.0


def produce(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20})
    for row in rows:
        producer.produce(
            topic,
            key=row.key,
            value=row.value,
            headers=list(row.headers),
            timestamp=row.timestamp,
            partition=0,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    left = producer.flush(PATIENCE)
    assert (left, errors) == (0, [])


def consume(address: str, topic: str, count: int) -> list[Row]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rows: list[Row] = []
    deadline = time.monotonic() + PATIENCE
    while len(rows) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, timeout=0.2):
            assert message.error() is None, message.error()
            headers: Any = tuple(message.headers() or ())
            rows.append(Row(message.key(), message.value(), headers, message.timestamp()[1]))
    consumer.close()
    return rows
