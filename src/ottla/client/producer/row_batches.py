"""Many rows as encoded batches: what `send_table` and `send_many` queue, each batch with the partition that it is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.partitioner import Partitioner
from ottla.client.producer.record_parts import serialized
from ottla.client.producer.spare_buffers import SpareBuffers
from ottla.clock import Clock
from ottla.model import Buffer
from ottla.records.compression import Codec
from ottla.records.encoder import EncodedBatch, Rows, encode_rows

if TYPE_CHECKING:
    from ottla.client.producer.table import TableColumns


class RowBatch(NamedTuple):
    """Rows that travel together."""

    partition: int
    """`ANY` where it may go to any."""
    data: Buffer
    rows: int


class RowBatches:
    """Encodes them, one when the last one is queued."""

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

    def of_table(self, topic: str, table: Any, partitions: int, columns: TableColumns) -> Iterator[RowBatch]:
        """The rows of an Arrow table."""
        from ottla.client.producer.table import grouped

        return self._encoded(grouped(table, columns, topic, partitions, self._partitioner, self._clock.wall_ms()))

    def of_lists(
        self, topic: str, values: Iterable[Any], keys: Iterable[Any] | None, partitions: int
    ) -> Iterator[RowBatch]:
        """A row of each value, with the key at the same place."""
        from ottla.client.producer.plain_rows import by_partition, plain

        config = self._config
        items = plain("values", values, config.value_serializer, partial(serialized, "value"))
        names = None if keys is None else plain("keys", keys, config.key_serializer, partial(serialized, "key"))
        return self._encoded(by_partition(items, names, topic, partitions, self._partitioner, self._clock.wall_ms()))

    def _encoded(self, groups: Iterable[tuple[int, Rows]]) -> Iterator[RowBatch]:
        desk = self._desks.take(self._config.table_batch_bytes)
        try:
            for partition, rows in groups:
                for batch in self._batches_of(rows, desk):
                    yield RowBatch(partition, batch.data, batch.last_row - batch.first_row + 1)
        finally:
            self._desks.give_back(desk)

    def _batches_of(self, rows: Rows, desk: bytearray) -> Iterator[EncodedBatch]:
        return encode_rows(
            rows,
            max_bytes=self._config.table_batch_bytes,
            codec=self._codec,
            level=self._config.compression_level,
            sealed=self._sealed,
            desk=desk,
            room=self._spare.take,
        )
