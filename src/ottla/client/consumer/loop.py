"""What a loop over a consumer (`for record in consumer`) has been given and has not handed out yet.

Positions are behind all that `poll` returned. Whoever stops in the middle of a loop, or commits there, has had less:
this knows how much, at no cost for each record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.client.consumer.record import RecordIterator
from ottla.client.consumer.records import RecordSlice
from ottla.model import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1


class Loop:
    """The records of one `poll`, on their way out one by one."""

    def __init__(self) -> None:
        self._slices: deque[RecordSlice] = deque()
        self._left: RecordIterator | None = None
        self._ended_at: int | None = None
        """The row at which `discard` ended the iterator; None while it runs."""

    def fill(self, slices: Iterable[RecordSlice]) -> None:
        """These are to be handed out."""
        self._slices.extend(slices)

    def portions(self) -> Iterator[Iterator[Any]]:
        """Iterators over all of them; what each has yielded counts as handed out."""
        while self._slices:
            # Taken off the queue last: an exception of a signal handler must find the records in one of both places.
            portion = self._slices[0]
            self._left, self._ended_at = portion.iterator(), None
            self._slices.popleft()
            yield self._left

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Of each partition that has something here, the offset that is handed out next."""
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
        """Return the offset and epoch as `next_offsets`, but of the record yielded last, for whose turn is not over."""
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
        """Yield nothing more; the record yielded last may be in the loop's body still."""
        left = self._left
        if left is not None and self._ended_at is None:
            self._ended_at = left.row
            left.end()
        self._slices.clear()

    def clear(self) -> None:
        """Yield nothing more; all that was yielded is processed."""
        self.discard()
        self._left = self._ended_at = None
