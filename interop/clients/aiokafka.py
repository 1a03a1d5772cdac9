"""The client aiokafka, on asyncio, with parts in Cython."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from interop.rows import Row

PATIENCE = 30.0


def produce(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    asyncio.run(asyncio.wait_for(send(address, topic, rows, codec), PATIENCE))


def consume(address: str, topic: str, count: int) -> list[Row]:
    return asyncio.run(asyncio.wait_for(read(address, topic, count), PATIENCE))


async def send(address: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    compression = None if codec == "none" else codec
    async with AIOKafkaProducer(bootstrap_servers=address, compression_type=compression, linger_ms=20) as producer:
        futures = [
            await producer.send(
                topic, row.value, row.key, partition=0, timestamp_ms=row.timestamp, headers=list(row.headers)
            )
            for row in rows
        ]
        await asyncio.gather(*futures)


async def read(address: str, topic: str, count: int) -> list[Row]:
    async with AIOKafkaConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        rows: list[Row] = []
        while len(rows) < count:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                rows += [Row(r.key, r.value, tuple(r.headers), r.timestamp) for r in records]
        return rows
