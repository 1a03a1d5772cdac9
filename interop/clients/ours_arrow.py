"""Ottla's producer and consumer, with Arrow tables."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from interop.rows import Row
from ottla import Consumer, Producer, TopicPartition

PATIENCE = 30.0
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def produce(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    table = pa.table(
        {
            "key": pa.array([row.key for row in rows], pa.binary()),
            "value": pa.array([row.value for row in rows], pa.binary()),
            "at": pa.array([row.timestamp for row in rows], pa.timestamp("ms", tz="UTC")),
            "headers": pa.array([[{"key": k, "value": v} for k, v in row.headers] for row in rows], HEADERS),
            "partition": pa.array([0] * len(rows), pa.int32()),
        }
    )
    with Producer({"bootstrap.servers": address, "compression.type": codec}, linger_ms=20) as producer:
        receipt = producer.send_table(topic, table, timestamp="at", headers="headers", partition="partition")
        producer.flush(PATIENCE)
        receipt.result(PATIENCE)


def consume(address: str, topic: str, count: int) -> list[Row]:
    rows: list[Row] = []
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        deadline = time.monotonic() + PATIENCE
        while len(rows) < count and time.monotonic() < deadline:
            table = consumer.poll_arrow(0.2, include_headers=True)
            rows += map(row_of, table.to_pylist())
    return rows


def row_of(fields: dict[str, object]) -> Row:
    """Convert a line of the table to a row."""
    headers = tuple((header["key"], header["value"]) for header in fields["headers"] or ())  # type: ignore[attr-defined]
    timestamp = round(fields["timestamp"].timestamp() * 1000)  # type: ignore[attr-defined]
    return Row(fields["key"], fields["value"], headers, timestamp)  # type: ignore[arg-type]
