"""The outcome of a batch, shared by the futures of its records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ottla.client.producer.deliveries import Deliveries, OnDelivery, new_metadata
from ottla.client.runtime.future import GUARD, notify, run_callback
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.producer.future import RecordFuture

__all__ = ["OnDelivery", "ProduceRequestResult"]
OTHERS_AT_FAULT = "the record was refused together with its batch, in which other records were invalid"
FIRST = itemgetter(0)


class ProduceRequestResult:
    """A base offset or an error, or the smaller batches this one was split into."""

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
        """One error for all records, or the broker's remarks about single ones."""
        self.seen = False
        """Whether somebody has asked for the error."""
        self.parts: list[tuple[int, ProduceRequestResult]] = []
        """First record and result of each smaller batch."""
        self.deliveries: Deliveries | None = None
        """The callbacks that came with the records; they are noted while the batch is open, and so before an outcome."""
        self._watchers: list[tuple[int, RecordFuture, Callable[[RecordFuture], None]]] = []
        """Record, future, and callback of those that were given to a future; they come after the others."""

    def on_delivery(self, callback: OnDelivery, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        """Call back for a record that has just come into the batch; who appends holds the accumulator's lock."""
        if self.deliveries is None:
            self.deliveries = Deliveries()
        self.deliveries.add(callback, index, timestamp, key_size, value_size)

    def add_callback(self, index: int, future: RecordFuture, callback: Callable[[RecordFuture], None]) -> None:
        """Call back with the future when the record at `index` has its outcome; at once when it has."""
        with GUARD:
            result, index = self.of(index)
            if not result.done:
                result._watchers.append((index, future, callback))
                return
        run_callback(callback, future)

    def of(self, index: int) -> tuple[ProduceRequestResult, int]:
        """The result that the record at `index` belongs to now, and its index there."""
        result = self
        while result.parts:
            first, part = result.parts[bisect_right(result.parts, index, key=FIRST) - 1]
            result, index = part, index - first
        return result, index

    def error_of(self, index: int) -> Exception | None:
        """The error of one record."""
        if self.error is None or isinstance(self.error, Exception):
            return self.error
        return self.error_by_remark(self.error.get(index))

    def error_by_remark(self, remark: str | None) -> KafkaError:
        """The error of a record about which the broker said this, or nothing."""
        return error_for(ErrorCode.INVALID_RECORD, OTHERS_AT_FAULT if remark is None else remark)

    def metadata_of(self, index: int, timestamp: int, key_size: int, value_size: int) -> RecordMetadata:
        """Where the record at `index` was written."""
        offset = -1 if self.base_offset < 0 else self.base_offset + index
        moment = timestamp if self.log_append_time < 0 else self.log_append_time
        return new_metadata(self.topic, self.partition, offset, moment, key_size, value_size)

    def complete(
        self,
        base_offset: int = -1,
        log_append_time: int = -1,
        error: Exception | Mapping[int, str] | None = None,
    ) -> bool:
        """Settle it and run the callbacks, in the order of the records; False when it was settled before."""
        with GUARD:
            if self.done or self.parts:
                return False
            self.base_offset, self.log_append_time, self.error = base_offset, log_append_time, error
            self.done = True
            deliveries, self.deliveries = self.deliveries, None
            watchers, self._watchers = self._watchers, []
        if deliveries is not None and error is None:
            deliveries.tell(self.topic, self.partition, base_offset, log_append_time)
        elif deliveries is not None:
            deliveries.fail(self.error_of)
        for _, future, callback in watchers:
            notify(callback, future)
        return True

    def split(self, parts: list[tuple[int, ProduceRequestResult]]) -> None:
        """The batch was split; the records' futures and callbacks follow."""
        with GUARD:
            self.parts = parts
            deliveries, self.deliveries = self.deliveries, None
            watchers, self._watchers = self._watchers, []
            if deliveries is not None:
                deliveries.hand_over(self._deliveries_of)
            for index, future, callback in watchers:
                part, position = self.of(index)
                part._watchers.append((position, future, callback))

    def _deliveries_of(self, index: int) -> tuple[Deliveries, int]:
        part, position = self.of(index)
        if part.deliveries is None:
            part.deliveries = Deliveries()
        return part.deliveries, position

    def spans(self, count: int) -> Iterator[tuple[int, int]]:
        """First offset and number of records of each piece that the batch's `count` records ended up in."""
        if not self.parts:
            yield self.base_offset, count
        ends = [first for first, _ in self.parts[1:]] + [count]
        for (first, part), end in zip(self.parts, ends, strict=False):
            yield from part.spans(end - first)


def metadata_or_error(future: Any, callback: OnDelivery) -> None:
    """Tell a callback what became of a record whose future it was given to."""
    error = future.exception(0)
    if error is None:
        callback(future.result(0), None)
    else:
        callback(None, error)
