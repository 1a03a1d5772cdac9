"""The outcome of one record."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ottla.client.future import awaited, wait_for
from ottla.client.producer.produce_request_result import OnDelivery, ProduceRequestResult
from ottla.model import RecordMetadata, TopicPartition


class RecordFuture:
    """Where a record was written, once it was: a light view of its batch's result.

    Can be waited for (`result`), awaited in asyncio, or called back from.
    """

    __slots__ = ("_index", "_key_size", "_result", "_timestamp", "_value_size")

    def __init__(
        self, result: ProduceRequestResult, index: int, timestamp: int, key_size: int, value_size: int
    ) -> None:
        self._result = result
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the record goes."""
        return TopicPartition(self._result.topic, self._result.partition)

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self._result.of(self._index)[0].done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is, waiting up to `timeout` seconds; raises what kept it from being written."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.metadata_in(*self._result.of(self._index))

    def exception(self, timeout: float | None = None) -> Exception | None:
        """What kept the record from being written, or None; waits as `result` does."""
        if not self.done():
            wait_for(self, timeout)
        result, index = self._result.of(self._index)
        return result.error_of(index)

    def add_done_callback(self, callback: Callable[[RecordFuture], None]) -> None:
        """Call `callback(future)` on the sender's thread; at once when there is an outcome already."""
        self._result.add_callback(self._index, self, callback, False)

    def on_delivery(self, callback: OnDelivery) -> None:
        """Call `callback(metadata, error)`, one of which is None, on the sender's thread."""
        self._result.add_callback(self._index, self, callback, True)

    def metadata_in(self, result: ProduceRequestResult, index: int) -> RecordMetadata:
        """Where the record is, it being the one at `index` of `result`."""
        base = result.base_offset
        timestamp = self._timestamp if result.log_append_time < 0 else result.log_append_time
        return RecordMetadata(
            result.topic,
            result.partition,
            -1 if base < 0 else base + index,
            timestamp,
            self._key_size,
            self._value_size,
        )

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return awaited(self)


def failed_future(topic: str, error: Exception) -> RecordFuture:
    """The future of a record that never got into a batch."""
    result = ProduceRequestResult(topic, -1)
    result.complete(error=error)
    return RecordFuture(result, 0, -1, -1, -1)
