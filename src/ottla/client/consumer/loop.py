"""The records that a loop over a consumer (`for record in consumer`) has received and not yielded yet.

`poll` advances the positions past all records that it returns. A loop that ends early, or a commit in its body, must
not include the records that the loop has not yielded. This class derives their offsets from the iterators, without a
cost per record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.client.consumer.record import RecordIterator
from ottla.client.consumer.records import RecordSlice
from ottla.model import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1


class LoopRecords:
    """The records of one `poll`, yielded one by one."""

    def __init__(self) -> None:
        self._slices: deque[RecordSlice] = deque()
        self._left: RecordIterator | None = None
        self._ended_at: int | None = None
        """The row at which `discard` ended the iterator; None while it runs."""

    def add_records(self, slices: Iterable[RecordSlice]) -> None:
        """Add the records of a poll."""
        self._slices.extend(slices)

    def iter_portions(self) -> Iterator[Iterator[Any]]:
        """Yield iterators over all records.

        Each record counts as received by the user once its iterator has yielded it.
        """
        while self._slices:
            # The slice leaves the queue after `_left` is set. If a signal handler raises in between, no record is lost.
            portion = self._slices[0]
            self._left, self._ended_at = portion.iterator(), None
            self._slices.popleft()
            yield self._left

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the next offset to yield of each partition with records here."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        left = self._left
        if left is not None and left.row < left.stop:
            epoch = left.source.columns.leader_epoch(left.row - 1) if left.row > left.start else NO_EPOCH
            found[left.source.tp] = OffsetAndMetadata(left.source.columns.offsets[left.row], "", epoch)
        for portion in self._slices:
            first = portion.source.columns.offsets[portion.start]
            found.setdefault(portion.source.tp, OffsetAndMetadata(first, "", NO_EPOCH))
        return found

    def unprocessed_offsets(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return offset and epoch for each partition as `next_offsets` does, but include the last yielded record.

        The loop body may not have finished processing that record.
        """
        found: dict[TopicPartition, tuple[int, int]] = {}
        left = self._left
        if left is not None:
            row = max((left.row if self._ended_at is None else self._ended_at) - 1, left.start)
            epoch = left.source.columns.leader_epoch(row - 1) if row > left.start else NO_EPOCH
            found[left.source.tp] = left.source.columns.offsets[row], epoch
        for portion in self._slices:
            found.setdefault(portion.source.tp, (portion.source.columns.offsets[portion.start], NO_EPOCH))
        return found

    def discard(self) -> None:
        """Stop yielding. The loop body may still process the last yielded record."""
        left = self._left
        if left is not None and self._ended_at is None:
            self._ended_at = left.row
            left.end()
        self._slices.clear()

    def clear(self) -> None:
        """Stop yielding. All yielded records are processed."""
        self.discard()
        self._left = self._ended_at = None
