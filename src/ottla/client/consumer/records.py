"""What one `poll` returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from ottla.client.consumer.record import ConsumerRecord, RecordSource
from ottla.model import TopicPartition


class RecordSlice:
    """Consecutive rows of one fetched chunk."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: RecordSource, start: int, stop: int) -> None:
        self.source = source
        self.start = start
        self.stop = stop

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return map(partial(ConsumerRecord, self.source), range(self.start, self.stop))

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

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._slices)

    def __len__(self) -> int:
        return sum(map(len, self._slices))

    def __bool__(self) -> bool:
        return bool(self._slices)
