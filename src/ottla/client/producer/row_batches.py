"""Encode many rows as batches, each for one partition; used by `send_table` and `send_many`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.partitioner import Partitioner
from ottla.client.producer.record_parts import bind_topic, serialized
from ottla.client.producer.spare_buffers import SpareBuffers
from ottla.clock import Clock
from ottla.model import Buffer
from ottla.records.compression import Codec
from ottla.records.encoder import EncodedBatch, Rows, encode_rows

if TYPE_CHECKING:
    from ottla.client.producer.table import TableColumns


class RowBatch(NamedTuple):
    """An encoded batch of rows."""

    partition: int
    """`ANY` if it may be sent to any partition."""
    data: Buffer
    rows: int


class RowBatches:
    """Encodes batches lazily: one after the previous one was queued."""

    def __init__(
        self,
        config: ProducerConfig,
        codec: Codec,
        partitioner: Partitioner,
        clock: Clock,
        spare: SpareBuffers,
        *,
        sealed: bool,
    ) -> None:
        self._config = config
        self._codec = codec
        self._partitioner = partitioner
        self._clock = clock
        self._spare = spare
        self._desks = SpareBuffers({config.table_batch_bytes})
        self._sealed = sealed

    def encode_table(self, topic: str, table: Any, partitions: int, columns: TableColumns) -> Iterator[RowBatch]:
        """Yield the batches of an Arrow table."""
        from ottla.client.producer.table import group_by_partition

        return self._encode_groups(
            group_by_partition(table, columns, topic, partitions, self._partitioner, self._clock.wall_ms())
        )

    def encode_lists(
        self, topic: str, values: Iterable[Any], keys: Iterable[Any] | None, partitions: int
    ) -> Iterator[RowBatch]:
        """Yield the batches of values, with the key at the same index."""
        from ottla.client.producer.plain_rows import group_by_partition, serialize_items

        config = self._config
        serializer = bind_topic(config.value_serializer, topic, "value", None)
        items = serialize_items("values", values, serializer, partial(serialized, "value"))
        key_serializer = bind_topic(config.key_serializer, topic, "key", None)
        names = None if keys is None else serialize_items("keys", keys, key_serializer, partial(serialized, "key"))
        return self._encode_groups(
            group_by_partition(items, names, topic, partitions, self._partitioner, self._clock.wall_ms())
        )

    def _encode_groups(self, groups: Iterable[tuple[int, Rows]]) -> Iterator[RowBatch]:
        desk = self._desks.take_buffer(self._config.table_batch_bytes)
        try:
            for partition, rows in groups:
                for batch in self._encode_rows(rows, desk):
                    yield RowBatch(partition, batch.data, batch.last_row - batch.first_row + 1)
        finally:
            self._desks.return_buffer(desk)

    def _encode_rows(self, rows: Rows, desk: bytearray) -> Iterator[EncodedBatch]:
        return encode_rows(
            rows,
            max_bytes=self._config.table_batch_bytes,
            codec=self._codec,
            level=self._config.compression_level,
            sealed=self._sealed,
            desk=desk,
            room=self._spare.take_buffer,
        )
