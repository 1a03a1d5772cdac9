"""Helpers for confluent-kafka with its fastest settings: fill a topic and read it."""

from __future__ import annotations

from itertools import count
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import Running

CHUNK = 10_000
SECONDS = 120
serial = count()

PRODUCER = {
    "log_level": 3,
    "acks": "1",
    "linger.ms": 5,
    "batch.size": 500_000,
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2_000_000,
}
CONSUMER = {
    "log_level": 3,
    "group.id": "bench",
    "enable.auto.commit": False,
    # By default it pauses for a second whenever 100,000 records are queued.
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 1,
}


def settings_for(server: Running) -> dict[str, Any]:
    """Return the client settings for a server: its address and the login."""
    return {"bootstrap.servers": server.bootstrap, **dict(server.settings)}


def new_topic(server: Running) -> str:
    """Create a topic of one partition with a new name."""
    name = f"bench-{next(serial)}"
    admin = AdminClient(settings_for(server))
    for done in admin.create_topics([NewTopic(name, 1, 1)]).values():
        done.result(SECONDS)
    return name


def fill(server: Running, topic: str, size: int, records: int) -> int:
    """Send `records` values of `size` bytes, in chunks, and wait until all are acknowledged."""
    producer = ck.Producer(settings_for(server) | PRODUCER)
    chunk = [{"value": bytes(size)}] * CHUNK
    for _ in range(records // CHUNK):
        producer.produce_batch(topic, chunk, 0)
        producer.poll(0)
    settle(producer)
    return records


def send(server: Running, topic: str, size: int, records: int) -> int:
    """Send the same records one by one, as programs do."""
    producer = ck.Producer(settings_for(server) | PRODUCER)
    value = bytes(size)
    for number in range(records):
        producer.produce(topic, value, partition=0)
        if number % CHUNK == 0:
            producer.poll(0)
    settle(producer)
    return records


def settle(producer: ck.Producer) -> None:
    """Wait until all records are acknowledged."""
    left = producer.flush(SECONDS)
    assert left == 0, f"{left} records were not acknowledged"


def consume(server: Running, topic: str, records: int) -> int:
    """Read `records` records from the start of `topic` with `consume()`, and access each value."""
    consumer = ck.Consumer(settings_for(server) | CONSUMER)
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    got = seen = 0
    while got < records:
        batch = consumer.consume(CHUNK, timeout=30)
        assert batch, f"nothing came for 30 seconds after {got} records"
        for message in batch:
            seen += len(message.value() or b"")
        got += len(batch)
    consumer.close()
    assert seen
    return got
