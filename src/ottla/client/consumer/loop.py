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

    def fill(self, slices: Iterable[RecordSlice]) -> None:
        """These are to be handed out."""
        self._slices.extend(slices)

    def portions(self) -> Iterator[Iterator[Any]]:
        """Iterators over all of them; what each has yielded counts as handed out."""
        while self._slices:
            portion = self._slices.popleft()
            self._left = portion.iterator()
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

    def empty(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Hand out nothing more; returns where each partition that had something here is to be read on from."""
        found = self.next_offsets()
        self._slices.clear()
        if self._left is not None:
            self._left.end()
        return found
