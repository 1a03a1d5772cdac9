"""A batch of records for one partition. Pure: the caller that appends holds the accumulator's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.producer.future import RecordFuture, new_future
from ottla.client.producer.produce_request_result import OnDelivery, ProduceRequestResult
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.model import Buffer, Header, TopicPartition
from ottla.records.batch import set_producer

MAX_SEQUENCE = 0x7FFF_FFFF
OVERHEAD_BYTES = 61 + 21
"""The largest overhead of the batch header and of a record's own lengths, in addition to key, value and headers."""


class ProducerBatch:
    """Open while records are appended, then encoded, sent and retried until it has a result."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "builder",
        "count",
        "created",
        "full",
        "last_error",
        "order",
        "payload",
        "producer",
        "reserved_bytes",
        "result",
        "retry_at",
        "sealed",
        "sequence_reset",
        "tp",
        "transactional",
    )

    def __init__(
        self,
        tp: TopicPartition,
        created: float,
        reserved_bytes: int,
        order: tuple[int, int],
        *,
        builder: Any = None,
        payload: Buffer = b"",
        count: int = 0,
    ) -> None:
        self.tp = tp
        self.created = created
        self.reserved_bytes = reserved_bytes
        """The bytes of `buffer.memory` that it reserves."""
        self.order = order
        """Its number among all batches; for a part of a split batch also the index of its first record in the original.
        """
        self.builder = builder
        self.payload = payload
        """The encoded batch, once it is closed."""
        self.count = count
        self.result = ProduceRequestResult(*tp)
        self.attempts = 0
        self.retry_at = created
        self.last_error: Exception | None = None
        self.full = builder is None
        self.producer = NO_PRODUCER
        self.base_sequence = -1
        """The sequence number of its first record, once it has one."""
        self.transactional = False
        self.sequence_reset = False
        """True if its sequence number was changed since it was last sent."""
        self.sealed = builder is None
        """True if `payload` contains the current producer id and sequence number; False from `assign_sequence` until `close`."""

    def try_append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        on_delivery: OnDelivery | None = None,
    ) -> RecordFuture | None:
        """Append one record. Return None if there is no room; the batch is full then."""
        if not self.builder.append(timestamp, key, value, headers):
            self.full = True
            return None
        index = self.count
        self.count = index + 1
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        if on_delivery is not None:
            self.result.on_delivery(on_delivery, index, timestamp, key_size, value_size)
        return new_future(self.result, index, timestamp, key_size, value_size)

    @property
    def serial(self) -> int:
        """Its number among all batches, which the parts of a split batch share."""
        return self.order[0]

    @property
    def size_bytes(self) -> int:
        """The encoded size; before compression while the batch is open."""
        return len(self.payload) if self.builder is None else int(self.builder.size_bytes)

    @property
    def has_sequence(self) -> bool:
        """True if it has a sequence number: it was sent, or is about to be."""
        return self.base_sequence >= 0

    def assign_sequence(self, producer: ProducerIdAndEpoch, base_sequence: int, transactional: bool) -> None:
        """Set the producer and the sequence number of the first record; repeated if numbering restarts."""
        self.sequence_reset = self.has_sequence
        self.producer, self.base_sequence, self.transactional = producer, base_sequence, transactional
        self.sealed = False

    def close(self) -> None:
        """Close the batch: compress and seal it."""
        about = (*self.producer, self.base_sequence)
        if self.builder is not None:
            self.payload = self.builder.build_in_place(*about, self.transactional)
            self.builder, self.full = None, True
        elif not self.sealed:
            # Bytes sent earlier may still wait in a socket's queue and must not change.
            if self.attempts or isinstance(self.payload, bytes):
                self.payload = bytearray(self.payload)
            set_producer(self.payload, *about, transactional=self.transactional)
        self.sealed = True

    def release(self) -> bytearray | None:
        """Release the data of a completed batch. Return its memory if nothing else refers to it."""
        memory = self.payload.obj if isinstance(self.payload, memoryview) else None
        # A response with an offset to the only attempt: the data has left the socket queue.
        arrived = not self.attempts and self.result.base_offset >= 0
        self.reserved_bytes, self.builder, self.payload = 0, None, b""
        return memory if arrived and isinstance(memory, bytearray) else None

    def split(self, make_builder: Callable[[int], Any]) -> list[ProducerBatch]:
        """Split into two batches with half the records each; futures and callbacks follow."""
        from ottla.records.columns import decode

        rows = decode(self.payload)
        records = [(rows.timestamps[i], rows.key(i), rows.value(i), rows.headers(i)) for i in range(rows.count)]
        half = len(records) // 2
        parts = [self._make_part(records[:half], 0, make_builder), self._make_part(records[half:], half, make_builder)]
        parts[0].reserved_bytes, self.reserved_bytes = self.reserved_bytes, 0
        self.result.split([(0, parts[0].result), (half, parts[1].result)])
        return parts

    def _make_part(self, records: list[Any], first: int, make_builder: Callable[[int], Any]) -> ProducerBatch:
        builder = make_builder(sum(upper_bound_bytes(*record[1:]) for record in records))
        order = (self.serial, self.order[1] + first)
        part = ProducerBatch(self.tp, self.created, 0, order, builder=builder)
        part.attempts = self.attempts
        for record in records:
            part.try_append(*record)
        if self.has_sequence:
            part.assign_sequence(self.producer, (self.base_sequence + first) & MAX_SEQUENCE, self.transactional)
        part.close()
        assert part.count == len(records)
        return part


def upper_bound_bytes(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """Return the largest size of one record in a batch of its own."""
    size = OVERHEAD_BYTES + (0 if key is None else len(key)) + (0 if value is None else len(value))
    return size + headers_bound_bytes(headers) if headers else size


def headers_bound_bytes(headers: tuple[Header, ...]) -> int:
    """Return the largest size of a record's headers."""
    return sum(10 + 3 * len(name) + (0 if data is None else len(data)) for name, data in headers)


def load_of(batches: list[ProducerBatch]) -> tuple[int, int]:
    """Return the number of records and the highest number of attempts.

    Fast, because an introspection client calls it ten times a second for thousands of batches.
    """
    records = attempts = 0
    for batch in batches:
        records += batch.count
        if batch.attempts > attempts:
            attempts = batch.attempts
    return records, attempts
