"""The result of a batch, shared by the futures of its records. Corresponds to Java's ProduceRequestResult."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.client.producer.deliveries import DeliveryCallbacks, OnDelivery, new_metadata
from ottla.client.runtime.future import GUARD, call_safely, run_callback
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.producer.future import RecordFuture

__all__ = ["OnDelivery", "ProduceRequestResult"]
OTHERS_AT_FAULT = "the record was rejected because other records of its batch are invalid"
FIRST = itemgetter(0)


class ProduceRequestResult:
    """A base offset or an error, or the smaller batches that this one was split into."""

    __slots__ = (
        "_watchers",
        "base_offset",
        "deliveries",
        "done",
        "error",
        "log_append_time",
        "partition",
        "parts",
        "seen",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: Exception | Mapping[int, str] | None = None
        """One error for all records, or the broker's errors of single records."""
        self.seen = False
        """True if the error was read."""
        self.parts: list[tuple[int, ProduceRequestResult]] = []
        """The first record and the result of each smaller batch."""
        self.deliveries: DeliveryCallbacks | None = None
        """The callbacks passed with the records; added while the batch is open, and so before there is a result."""
        self._watchers: list[tuple[int, RecordFuture, Callable[[RecordFuture], None]]] = []
        """Index, future and callback of callbacks added to futures; they run after the others."""

    def on_delivery(self, callback: OnDelivery, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        """Add the callback of a record that was just appended. The caller holds the accumulator's lock."""
        if self.deliveries is None:
            self.deliveries = DeliveryCallbacks()
        self.deliveries.add(callback, index, timestamp, key_size, value_size)

    def add_callback(self, index: int, future: RecordFuture, callback: Callable[[RecordFuture], None]) -> None:
        """Add a callback to be called with the future of the record at `index`; called at once if there is a result."""
        with GUARD:
            result, index = self.locate_record(index)
            if not result.done:
                result._watchers.append((index, future, callback))
                return
        run_callback(callback, future)

    def locate_record(self, index: int) -> tuple[ProduceRequestResult, int]:
        """Return the result that the record at `index` belongs to now, and its index there."""
        result = self
        while result.parts:
            first, part = result.parts[bisect_right(result.parts, index, key=FIRST) - 1]
            result, index = part, index - first
        return result, index

    def error_of(self, index: int) -> Exception | None:
        """Return the error of one record, or None."""
        if self.error is None or isinstance(self.error, Exception):
            return self.error
        return self.error_by_remark(self.error.get(index))

    def error_by_remark(self, remark: str | None) -> KafkaError:
        """Return the error of a record for which the broker sent this message, or none."""
        return error_for(ErrorCode.INVALID_RECORD, OTHERS_AT_FAULT if remark is None else remark)

    def metadata_of(self, index: int, timestamp: int, key_size: int, value_size: int) -> RecordMetadata:
        """Return the metadata of the record at `index`."""
        offset = -1 if self.base_offset < 0 else self.base_offset + index
        moment = timestamp if self.log_append_time < 0 else self.log_append_time
        return new_metadata(self.topic, self.partition, offset, moment, key_size, value_size)

    def complete(
        self,
        base_offset: int = -1,
        log_append_time: int = -1,
        error: Exception | Mapping[int, str] | None = None,
    ) -> bool:
        """Set the result and run the callbacks in the order of the records. Return False if it was set before."""
        with GUARD:
            if self.done or self.parts:
                return False
            self.base_offset, self.log_append_time, self.error = base_offset, log_append_time, error
            self.done = True
            deliveries, self.deliveries = self.deliveries, None
            watchers, self._watchers = self._watchers, []
        if deliveries is not None and error is None:
            deliveries.call_with_metadata(self.topic, self.partition, base_offset, log_append_time)
        elif deliveries is not None:
            deliveries.call_with_errors(self.error_of)
        for _, future, callback in watchers:
            call_safely(callback, future)
        return True

    def split(self, parts: list[tuple[int, ProduceRequestResult]]) -> None:
        """Pass the futures and callbacks to the parts of a split batch."""
        with GUARD:
            self.parts = parts
            deliveries, self.deliveries = self.deliveries, None
            watchers, self._watchers = self._watchers, []
            if deliveries is not None:
                deliveries.move_to_parts(self._deliveries_of)
            for index, future, callback in watchers:
                part, position = self.locate_record(index)
                part._watchers.append((position, future, callback))

    def _deliveries_of(self, index: int) -> tuple[DeliveryCallbacks, int]:
        part, position = self.locate_record(index)
        if part.deliveries is None:
            part.deliveries = DeliveryCallbacks()
        return part.deliveries, position

    def iter_spans(self, count: int) -> Iterator[tuple[int, int]]:
        """Yield the first offset and the record count of each part of the batch with `count` records."""
        if not self.parts:
            yield self.base_offset, count
        ends = [first for first, _ in self.parts[1:]] + [count]
        for (first, part), end in zip(self.parts, ends, strict=False):
            yield from part.iter_spans(end - first)


def metadata_or_error(future: Any, callback: OnDelivery) -> None:
    """Call the callback with the result of a future."""
    error = future.exception(0)
    if error is None:
        callback(future.result(0), None)
    else:
        callback(None, error)
