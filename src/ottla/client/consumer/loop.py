"""What a loop over a consumer (`for record in consumer`) has been given and has not handed out yet.

Positions are behind all that `poll` returned. Whoever stops in the middle of a loop, or commits there, has had less:
this knows how much, at no cost for each record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from operator import length_hint

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.consumer.records import RecordSlice
from ottla.model import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1


class Loop:
    """The records of one `poll`, on their way out one by one."""

    def __init__(self) -> None:
        self._slices: deque[RecordSlice] = deque()
        self._records: list[ConsumerRecord] = []
        self._left: Iterator[ConsumerRecord] = iter(())

    def fill(self, slices: Iterable[RecordSlice]) -> None:
        """These are to be handed out."""
        self._slices.extend(slices)

    def portions(self) -> Iterator[Iterator[ConsumerRecord]]:
        """Iterators over all of them; what each has yielded counts as handed out."""
        while self._slices:
            self._records = list(self._slices.popleft())
            self._left = iter(self._records)
            yield self._left

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Of each partition that has something here, the offset that is handed out next."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        left = length_hint(self._left)
        if left:
            rows = self._records
            epoch = rows[-left - 1].leader_epoch if left < len(rows) else NO_EPOCH
            found[tp_of(rows[-left])] = OffsetAndMetadata(rows[-left].offset, "", epoch)
        for portion in self._slices:
            first = next(iter(portion))
            found.setdefault(tp_of(first), OffsetAndMetadata(first.offset, "", NO_EPOCH))
        return found

    def empty(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Hand out nothing more; returns where each partition that had something here is to be read on from."""
        found = self.next_offsets()
        self._slices.clear()
        self._records.clear()  # which ends the iterator over it
        return found


def tp_of(record: ConsumerRecord) -> TopicPartition:
    """Where a record is from."""
    return TopicPartition(record.topic, record.partition)
