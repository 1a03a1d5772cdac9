"""What became of one batch, for all of its records at once.

Completed by the sender's thread, asked by anybody's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ottla.client.future import GUARD, run_callback
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import RecordMetadata

if TYPE_CHECKING:
    from ottla.client.producer.future import RecordFuture

OnDelivery = Callable[[RecordMetadata | None, Exception | None], None]

OTHERS_AT_FAULT = "the record was refused together with its batch, in which other records were invalid"


class ProduceRequestResult:
    """A base offset or an error, or the smaller batches this one was split into."""

    __slots__ = ("_callbacks", "base_offset", "done", "error", "log_append_time", "partition", "parts", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: Exception | Mapping[int, str] | None = None
        """One error for all records, or the broker's remarks about single ones."""
        self.parts: list[tuple[int, ProduceRequestResult]] = []
        """First record and result of each smaller batch."""
        self._callbacks: list[tuple[int, RecordFuture, Callable[..., None], bool]] = []
        """Record, future, callback, and whether it is an `OnDelivery` or takes the future."""

    def add_callback(self, index: int, future: RecordFuture, callback: Callable[..., None], delivery: bool) -> None:
        """Call back when the record at `index` has its outcome; at once when it has."""
        with GUARD:
            result, index = self.of(index)
            if not result.done:
                result._callbacks.append((index, future, callback, delivery))
                return
        result._call(index, future, callback, delivery)

    def _call(self, index: int, future: RecordFuture, callback: Callable[..., None], delivery: bool) -> None:
        if not delivery:
            run_callback(callback, future)
        elif self.error is None:
            run_callback(callback, future.metadata_in(self, index), None)
        else:
            run_callback(callback, None, self.error_of(index))

    def of(self, index: int) -> tuple[ProduceRequestResult, int]:
        """The result that the record at `index` belongs to now, and its index there."""
        result = self
        while result.parts:
            first, part = result.parts[bisect_right(result.parts, index, key=lambda entry: entry[0]) - 1]
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
            callbacks, self._callbacks = self._callbacks, []
        for entry in callbacks:
            self._call(*entry)
        return True

    def split(self, parts: list[tuple[int, ProduceRequestResult]]) -> None:
        """The batch was split; the records' futures and callbacks follow."""
        with GUARD:
            self.parts = parts
            callbacks, self._callbacks = self._callbacks, []
            for index, future, callback, delivery in callbacks:
                part, position = self.of(index)
                part._callbacks.append((position, future, callback, delivery))

    def spans(self, count: int) -> Iterator[tuple[int, int]]:
        """First offset and number of records of each piece that the batch's `count` records ended up in."""
        if not self.parts:
            yield self.base_offset, count
        ends = [first for first, _ in self.parts[1:]] + [count]
        for (first, part), end in zip(self.parts, ends, strict=False):
            yield from part.spans(end - first)
