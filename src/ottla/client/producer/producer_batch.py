"""Records of one partition that travel together.

Pure: who appends holds the accumulator's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.model import Buffer, Header, TopicPartition

OVERHEAD_BYTES = 61 + 21
"""The most that a batch's head and a record's own lengths add to key, value and headers."""


class ProducerBatch:
    """Open while records are appended; then bytes, sent until they arrive or time is up."""

    __slots__ = (
        "attempts",
        "builder",
        "count",
        "created",
        "full",
        "last_error",
        "order",
        "payload",
        "reserved_bytes",
        "result",
        "retry_at",
        "tp",
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
        """What it holds of `buffer.memory`."""
        self.order = order
        """Its number among all batches, and for a part of a split batch the place of its first record in that one."""
        self.builder = builder
        self.payload = payload
        """The batch as it travels, once it is closed."""
        self.count = count
        self.result = ProduceRequestResult(*tp)
        self.attempts = 0
        self.retry_at = created
        self.last_error: Exception | None = None
        self.full = builder is None

    def try_append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Any) -> RecordFuture | None:
        """Take one record; None when it does not fit, after which the batch is full."""
        if not self.builder.append(timestamp, key, value, headers):
            self.full = True
            return None
        index = self.count
        self.count = index + 1
        key_size = -1 if key is None else len(key)
        return RecordFuture(self.result, index, timestamp, key_size, -1 if value is None else len(value))

    @property
    def serial(self) -> int:
        """Its number among all batches, which the parts of a split batch share."""
        return self.order[0]

    @property
    def size_bytes(self) -> int:
        """What it will take on the wire, before compression as long as it is open."""
        return len(self.payload) if self.builder is None else int(self.builder.size_bytes)

    def close(self) -> None:
        """No more records: compress and seal."""
        if self.builder is not None:
            self.payload, self.builder, self.full = self.builder.build(), None, True

    def split(self, make_builder: Callable[[int], Any]) -> list[ProducerBatch]:
        """Two batches with half the records each; futures and callbacks follow them."""
        from ottla.records.columns import decode

        rows = decode(self.payload)
        records = [(rows.timestamps[i], rows.key(i), rows.value(i), rows.headers(i)) for i in range(rows.count)]
        half = len(records) // 2
        parts = [self._part(records[:half], 0, make_builder), self._part(records[half:], half, make_builder)]
        parts[0].reserved_bytes, self.reserved_bytes = self.reserved_bytes, 0
        self.result.split([(0, parts[0].result), (half, parts[1].result)])
        return parts

    def _part(self, records: list[Any], first: int, make_builder: Callable[[int], Any]) -> ProducerBatch:
        builder = make_builder(sum(upper_bound_bytes(*record[1:]) for record in records))
        order = (self.serial, self.order[1] + first)
        part = ProducerBatch(self.tp, self.created, 0, order, builder=builder)
        part.attempts = self.attempts
        for record in records:
            part.try_append(*record)
        part.close()
        assert part.count == len(records)
        return part


def upper_bound_bytes(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """The most that one record takes in a batch of its own."""
    size = OVERHEAD_BYTES + (0 if key is None else len(key)) + (0 if value is None else len(value))
    for name, data in headers:
        size += 10 + 3 * len(name) + (0 if data is None else len(data))
    return size
