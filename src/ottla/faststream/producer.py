"""Ottla's producer with the methods that faststream calls on aiokafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from aiokafka.structs import RecordMetadata, TopicPartition

from ottla.aio.producer import Producer
from ottla.errors import IllegalStateError
from ottla.faststream.client_settings import producer_settings
from ottla.faststream.errors import driver_errors
from ottla.model import Header

DEFAULT_BATCH_BYTES = 16 * 1024
RECORD_OVERHEAD_BYTES = 21
"""The maximum size of the lengths and deltas of a record with few headers."""
BATCH_OVERHEAD_BYTES = 61


class QueuedRecord(msgspec.Struct, frozen=True):
    """A record of a batch."""

    key: Any
    value: Any
    timestamp: int | None
    headers: list[Header]


class RecordBatch:
    """Records that are sent together. They may be larger than `max_batch_size` only if there is one."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size_bytes = BATCH_OVERHEAD_BYTES
        self.records: list[QueuedRecord] = []

    def append(
        self, *, key: Any, value: Any, timestamp: int | None, headers: Sequence[Header] = ()
    ) -> QueuedRecord | None:
        """Add a record and return it; None if the batch is full."""
        record = QueuedRecord(key, value, timestamp, list(headers))
        size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        size += sum(len(name) + len(content or b"") + 2 for name, content in record.headers)
        if self.records and self._size_bytes + size > self._max_bytes:
            return None
        self._size_bytes += size
        self.records.append(record)
        return record


class DriverProducer:
    """Sends records. Create it with the arguments of `AIOKafkaProducer`, and `settings` of Ottla."""

    def __init__(self, *, settings: dict[str, Any] | None = None, **arguments: Any) -> None:
        self._settings = {**producer_settings(arguments), **(settings or {})}
        self._max_batch_bytes = arguments.get("max_batch_size") or DEFAULT_BATCH_BYTES
        self._producer: Producer | None = None

    @property
    def _closed(self) -> bool:
        """True before `start` and after `stop`. The name is aiokafka's."""
        return self._producer is None

    async def start(self) -> None:
        """Create the producer. It connects to the brokers in the background."""
        if self._producer is None:
            self._producer = Producer(**self._settings)
            if self._settings.get("transactional_id") is not None:
                with driver_errors():
                    await self._producer.init_transactions()

    async def stop(self) -> None:
        """Send what is queued, and close the connections."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()

    async def flush(self) -> None:
        """Wait until all queued records have a result."""
        with driver_errors():
            await self._open().flush()

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record, and return the future of its metadata."""
        with driver_errors():
            sent = await self._open().send(
                topic, value, key=key, partition=partition, timestamp=timestamp_ms, headers=headers
            )
        return asyncio.ensure_future(read_metadata([sent]))

    def create_batch(self) -> RecordBatch:
        """Return an empty batch."""
        return RecordBatch(self._max_batch_bytes)

    async def send_batch(
        self, batch: RecordBatch, topic: str, *, partition: int | None = None
    ) -> asyncio.Future[RecordMetadata]:
        """Queue the records of a batch, and return the future of the first one's metadata, completed when all are sent."""
        producer, futures = self._open(), []
        for each in batch.records:
            with driver_errors():
                futures.append(
                    await producer.send(
                        topic,
                        each.value,
                        key=each.key,
                        partition=partition,
                        timestamp=each.timestamp,
                        headers=each.headers,
                    )
                )
        return asyncio.ensure_future(read_metadata(futures))

    def _open(self) -> Producer:
        if self._producer is None:
            raise IllegalStateError("the producer is closed: start the broker first")
        return self._producer


async def read_metadata(futures: Sequence[Any]) -> RecordMetadata:
    """Return the metadata of the first record, after all are sent. Raises the first error."""
    with driver_errors():
        results = [await each for each in futures]
    first = results[0]
    place = TopicPartition(first.topic, first.partition)
    return RecordMetadata(first.topic, first.partition, place, first.offset, first.timestamp, 0, None)
