"""The result of one `poll`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, Generic

from ottla.client.consumer.record import RecordIterator, RecordSource, records_of
from ottla.client.consumer.typed_record import ConsumerRecord, K, V
from ottla.model import OffsetAndMetadata, TimestampType, TopicPartition
from ottla.records.binary_column import column_of
from ottla.records.columns import BatchRows, Columns


class RecordSlice:
    """Consecutive rows of one fetched chunk."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: RecordSource, start: int, stop: int) -> None:
        self.source = source
        self.start = start
        self.stop = stop

    def __iter__(self) -> Iterator[Any]:
        return records_of(self.source, self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start

    def __reduce__(self) -> tuple[Any, ...]:
        source, columns, rows = self.source, self.source.columns, range(self.start, self.stop)
        raw = columns.raw_headers
        runs = [
            BatchRows(i, TimestampType(columns.timestamp_type(row)), columns.leader_epoch(row))
            for i, row in enumerate(rows)
        ]
        return restored_slice, (
            source.topic,
            source.partition,
            columns.offsets[self.start : self.stop].tobytes(),
            columns.timestamps[self.start : self.stop].tobytes(),
            [source.keys.get(row) for row in rows],
            [source.values.get(row) for row in rows],
            None if raw is None else [raw.get(row) for row in rows],
            [run for i, run in enumerate(runs) if not i or run[1:] != runs[i - 1][1:]],
            self.next_offset,
            self.objects(),
            None if source.delivery_counts is None else list(source.delivery_counts[self.start : self.stop]),
        )

    def part(self, start: int, stop: int) -> RecordSlice:
        """Return a slice of these rows."""
        return RecordSlice(self.source, start, stop)

    def runs_where(self, keep: Callable[[Any], object]) -> Iterator[RecordSlice]:
        """Yield the rows for which `keep` is true, as slices."""
        rows = zip(self, range(self.start, self.stop), strict=True)
        for kept, run in groupby(rows, lambda each: bool(keep(each[0]))):
            if kept:
                numbers = [row for _, row in run]
                yield self.part(numbers[0], numbers[-1] + 1)

    @property
    def next_offset(self) -> int:
        """The next offset to read after these rows.

        If they are the last of their chunk, it is after the control records that follow.
        """
        columns = self.source.columns
        return columns.next_offset if self.stop == columns.count else int(columns.offsets[self.stop - 1]) + 1

    def iterator(self) -> RecordIterator:
        """Return an iterator with a `row` attribute, which shows how many rows it has yielded."""
        return RecordIterator(self.source, self.start, self.stop)

    def objects(self) -> tuple[list[Any] | None, list[Any] | None]:
        """Return the deserialized keys and values; None for each without a deserializer."""
        return None, None


class DeserializedSlice(RecordSlice):
    """Rows with deserialized keys or values."""

    __slots__ = ("_keys", "_values")

    def __init__(
        self, source: RecordSource, start: int, stop: int, keys: list[Any] | None, values: list[Any] | None
    ) -> None:
        super().__init__(source, start, stop)
        self._keys = keys
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return records_of(self.source, self.start, self.stop, self._keys, self._values)

    def part(self, start: int, stop: int) -> RecordSlice:
        """Return a slice of these rows."""
        first, last = start - self.start, stop - self.start
        keys = None if self._keys is None else self._keys[first:last]
        values = None if self._values is None else self._values[first:last]
        return DeserializedSlice(self.source, start, stop, keys, values)

    def iterator(self) -> RecordIterator:
        """Return the same as `RecordSlice.iterator`."""
        return RecordIterator(self.source, self.start, self.stop, self._keys, self._values)

    def objects(self) -> tuple[list[Any] | None, list[Any] | None]:
        """Return the same as `RecordSlice.objects`."""
        return self._keys, self._values


def restored_slice(
    topic: str,
    partition: int,
    offsets: bytes,
    timestamps: bytes,
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: list[bytes | None] | None,
    runs: list[BatchRows],
    next_offset: int,
    objects: tuple[list[Any] | None, list[Any] | None],
    delivery_counts: list[int] | None = None,
) -> RecordSlice:
    """Restore a slice from a pickle."""
    columns = Columns(
        len(keys),
        memoryview(offsets).cast("q"),
        memoryview(timestamps).cast("q"),
        column_of(keys),
        column_of(values),
        None if headers is None else column_of(headers),
        runs,
        next_offset,
    )
    source = RecordSource(topic, partition, columns, delivery_counts=delivery_counts)
    if objects == (None, None):
        return RecordSlice(source, 0, len(keys))
    return DeserializedSlice(source, 0, len(keys), *objects)


class ConsumerRecords(Generic[K, V]):
    """Records of any number of partitions, ordered within each partition."""

    __slots__ = ("_next_offsets", "_slices")

    def __init__(
        self,
        slices: Sequence[RecordSlice] = (),
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        self._slices = slices
        self._next_offsets = next_offsets

    def _repr_html_(self) -> str:
        """Return the first records as a table, for notebooks."""
        from ottla.client.interface.html_tables import moment_of, render_table

        rows = ((r.topic, r.partition, r.offset, moment_of(r.timestamp), r.key, r.value) for r in self)
        count = len(self)
        columns = ("topic", "partition", "offset", "timestamp (UTC)", "key", "value")
        return render_table(f"{count:,} record{'' if count == 1 else 's'}", columns, rows, count)

    @property
    def slices(self) -> Sequence[RecordSlice]:
        """The records as fetched, chunk by chunk."""
        return self._slices

    def where(self, keep: Callable[[ConsumerRecord[K, V]], object]) -> ConsumerRecords[K, V]:
        """Return the records for which `keep` is true. `next_offsets` of the result still covers all records."""
        kept = [run for part in self._slices for run in part.runs_where(keep)]
        return ConsumerRecords(kept, self.next_offsets())

    def records(self, tp: TopicPartition) -> list[ConsumerRecord[K, V]]:
        """Return the records of one partition."""
        mine = (s for s in self._slices if s.source.partition == tp.partition and s.source.topic == tp.topic)
        return list(chain.from_iterable(mine))

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions with records."""
        return {TopicPartition(s.source.topic, s.source.partition) for s in self._slices}

    def first_offset(self, tp: TopicPartition) -> int:
        """Return the offset of the first record of a partition. Raises KeyError if there is none."""
        for part in self._slices:
            if part.source.partition == tp.partition and part.source.topic == tp.topic:
                offset: int = part.source.columns.offsets[part.start]
                return offset
        raise KeyError(f"no records of {tp}")

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the next offset to read of each partition, for commits (KIP-1094).

        It is after the last record and the control records that follow.
        """
        if self._next_offsets is not None:
            return dict(self._next_offsets)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for part in self._slices:
            epoch = part.source.columns.leader_epoch(part.stop - 1)
            place = TopicPartition(part.source.topic, part.source.partition)
            found[place] = OffsetAndMetadata(part.next_offset, "", epoch)
        return found

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return chain.from_iterable(self._slices)

    def __len__(self) -> int:
        return sum(map(len, self._slices))

    def __bool__(self) -> bool:
        return bool(self._slices)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConsumerRecords, (list(self._slices),)

    def __repr__(self) -> str:
        counts: dict[TopicPartition, int] = {}
        for part in self._slices:
            counts[part.source.tp] = counts.get(part.source.tp, 0) + len(part)
        counted = ", ".join(f"{tp}: {count}" for tp, count in counts.items())
        return f"ConsumerRecords({len(self)} records{', ' if counted else ''}{counted})"
