"""The future of one record."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

from ottla.client.producer.produce_request_result import OnDelivery, ProduceRequestResult, metadata_or_error
from ottla.client.runtime.future import await_future, wait_for
from ottla.model import RecordMetadata, TopicPartition


class RecordFuture:
    """The future position of a record: a light view of the result of its batch.

    Can be awaited in asyncio, waited for with `result`, or given a callback.
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

    def __repr__(self) -> str:
        result, index = self._result.locate_record(self._index)
        what = "pending" if not result.done else repr(result.error_of(index) or self.result(0))
        return f"RecordFuture({result.topic!r}, partition={result.partition}, {what})"

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the record."""
        return TopicPartition(self._result.topic, self._result.partition)

    def done(self) -> bool:
        """Return True if there is a result."""
        return self._result.done or (bool(self._result.parts) and self._result.locate_record(self._index)[0].done)

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return the metadata of the written record, waiting up to `timeout` seconds.

        Raises the error of a failed record.
        """
        result, index = self._result, self._index
        if not result.done or result.error is not None:
            error = self.exception(timeout)
            if error is not None:
                raise error
            result, index = self._result.locate_record(self._index)
        return result.metadata_of(index, self._timestamp, self._key_size, self._value_size)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Return the error of a failed record, or None; waits as `result` does."""
        if not self.done():
            wait_for(self, timeout)
        result, index = self._result.locate_record(self._index)
        error = result.error_of(index)
        if error is not None:
            result.seen = True
        return error

    def is_any_of(self, results: Iterable[object]) -> bool:
        """Return True if the record's batch is one of these."""
        part = self._result.locate_record(self._index)[0]
        return any(part is result for result in results)

    def add_done_callback(self, callback: Callable[[RecordFuture], None]) -> None:
        """Call `callback(future)` on the sender thread, or at once if there is a result already."""
        self._result.add_callback(self._index, self, callback)

    def on_delivery(self, callback: OnDelivery) -> None:
        """Call `callback(metadata, error)` on the sender thread; one of the two is None."""
        self._result.add_callback(self._index, self, partial(metadata_or_error, callback=callback))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return await_future(self)


def new_future(
    result: ProduceRequestResult, index: int, timestamp: int, key_size: int, value_size: int
) -> RecordFuture:
    """Create a `RecordFuture`, in C without a tuple of arguments."""
    future = RecordFuture.__new__(RecordFuture)
    future._result = result
    future._index = index
    future._timestamp = timestamp
    future._key_size = key_size
    future._value_size = value_size
    return future
