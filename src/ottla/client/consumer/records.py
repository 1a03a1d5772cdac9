"""What one `poll` returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ottla.client.consumer.record import ConsumerRecord, RecordSource, records_of
from ottla.model import OffsetAndMetadata, TopicPartition


class RecordSlice:
    """Consecutive rows of one fetched chunk."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: RecordSource, start: int, stop: int) -> None:
        self.source = source
        self.start = start
        self.stop = stop

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return records_of(self.source, self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start


class ConsumerRecords:
    """Records of any number of partitions, in order within each."""

    __slots__ = ("_slices",)

    def __init__(self, slices: Sequence[RecordSlice] = ()) -> None:
        self._slices = slices

    def records(self, tp: TopicPartition) -> list[ConsumerRecord]:
        """The records of one partition."""
        mine = (s for s in self._slices if s.source.partition == tp.partition and s.source.topic == tp.topic)
        return list(chain.from_iterable(mine))

    def partitions(self) -> set[TopicPartition]:
        """The partitions that have records here."""
        return {TopicPartition(s.source.topic, s.source.partition) for s in self._slices}

    def first_offset(self, tp: TopicPartition) -> int:
        """The offset of the first record of a partition that has some here."""
        for part in self._slices:
            if part.source.partition == tp.partition and part.source.topic == tp.topic:
                offset: int = part.source.columns.offsets[part.start]
                return offset
        raise KeyError(f"there is no record of {tp} here")

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read each partition on when these are done, past what is no record; to be committed (KIP-1094)."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for part in self._slices:
            columns, last = part.source.columns, part.stop - 1
            offset = columns.next_offset if part.stop == columns.count else columns.offsets[last] + 1
            found[TopicPartition(part.source.topic, part.source.partition)] = OffsetAndMetadata(
                offset, "", columns.leader_epoch(last)
            )
        return found

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._slices)

    def __len__(self) -> int:
        return sum(map(len, self._slices))

    def __bool__(self) -> bool:
        return bool(self._slices)
