"""Read a range of offsets of one partition, fast; used by Spark tasks.

A read ends when the position reaches the end of the range. The last offset before the end may have no record, because
compaction and transactions leave gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ottla.client.consumer.consumer import Consumer
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OffsetOutOfRangeError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.records.columns import Columns

OUR_OWN = ("auto.offset.reset", "enable.auto.commit")
"""Settings that the reader sets itself: it starts at a given offset and commits nothing."""


class RangeReader:
    """The offsets [start, end) of a partition, as columns or Arrow record batches.

    `config` contains consumer settings. The next fetch is in flight while the caller processes the last chunk. A chunk
    is limited by `max.partition.fetch.bytes`. Close it, use it in a `with` statement, or read to the end. With a
    `topic_id`, a recreated topic raises KafkaError with INCONSISTENT_TOPIC_ID.
    """

    def __init__(self, config: Mapping[str, Any], tp: TopicPartition, start: int, end: int, topic_id: str = "") -> None:
        self._tp = TopicPartition(*tp)
        self._start = start
        self._end = end
        self._topic_id = topic_id
        settings = {name: value for name, value in config.items() if name.replace("_", ".") not in OUR_OWN}
        self._consumer = Consumer(settings, auto_offset_reset="none", enable_auto_commit=False)
        self._patience = self._consumer.config.default_api_timeout_ms / 1000

    def batches(
        self, unit: Literal["s", "ms", "us", "ns"] = "us", *, with_headers: bool = False, max_rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as record batches with timestamps in `unit` and at most `max_rows` rows each."""
        from ottla.records import arrow

        for columns in self.columns(with_headers=with_headers):
            batch = arrow.to_record_batch(columns, *self._tp, with_headers=with_headers, unit=unit)
            step = max_rows or batch.num_rows
            for first in range(0, batch.num_rows, step):
                yield batch.slice(first, step)

    def columns(self, *, with_headers: bool = False) -> Iterator[Columns]:
        """Yield the rows in Ottla's own columns, one chunk per fetch."""
        consumer = self._consumer
        try:
            consumer.assign([self._tp])
            consumer.seek(self._tp, self._start)
            consumer.bound({self._tp: self._end})
            while consumer.position(self._tp) < self._end:
                yield from self._next(with_headers)
        finally:
            self.close()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def __enter__(self) -> RangeReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, with_headers: bool) -> Iterator[Columns]:
        before = self._consumer.position(self._tp)
        try:
            chunks = self._consumer.poll_columns(self._patience, include_headers=with_headers)
        except OffsetOutOfRangeError:
            raise self._lost_error(before) from None
        if not chunks and self._consumer.position(self._tp) == before:
            raise KafkaTimeoutError(
                f"{self._tp}: no records received at offset {before} of range {self._start} to {self._end} within "
                f"{self._patience:g} s (default.api.timeout.ms)"
            )
        self._check_topic()
        return (columns for _, columns in chunks)

    def _check_topic(self) -> None:
        """Raise if the topic has another id than expected. Brokers without topic ids are not checked."""
        found = self._consumer.topic_id(self._tp.topic)
        if self._topic_id and found.int and str(found) != self._topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {self._tp.topic} was deleted and recreated while it was read"
            )

    def _lost_error(self, offset: int) -> OffsetOutOfRangeError:
        first = self._consumer.beginning_offsets([self._tp])[self._tp]
        last = self._consumer.end_offsets([self._tp])[self._tp]
        return OffsetOutOfRangeError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{self._tp}: offset {offset} of range {self._start} to {self._end} does not exist any more; available are {first} to "
            f"{last}: the rest was deleted by retention or with its topic",
        )
