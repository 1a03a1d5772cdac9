"""One partition's share of a fetch answer, on its way to the user.

Pure: decoded when it is first wanted, once, into columns; records are handed out of them in portions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from ottla.client.consumer.fetching.damage import first_damage
from ottla.client.consumer.record import RecordSource
from ottla.client.consumer.records import DeserializedSlice, RecordSlice
from ottla.errors import CorruptRecordError
from ottla.model import TopicPartition
from ottla.records.columns import Columns, decode
from ottla.records.survey import extent


class CompletedFetch:
    """Fetched and not yet handed out."""

    __slots__ = (
        "_asked",
        "_below",
        "_row",
        "_source",
        "answer",
        "fetch_offset",
        "leader_epoch",
        "records",
        "size_bytes",
        "tp",
    )

    def __init__(self, tp: TopicPartition, fetch_offset: int, answer: Any, leader_epoch: int) -> None:
        self.tp = tp
        self.leader_epoch = leader_epoch
        """Of the leader that was asked, or whose replica was; -1 when unknown."""
        self.fetch_offset = fetch_offset
        """The offset that was asked for."""
        self.answer = answer
        self.records: memoryview = memoryview(b"") if answer.records is None else answer.records
        self.size_bytes = len(self.records)
        self._asked = fetch_offset
        end = answer.high_watermark
        self._below: int | None = end if end >= 0 else None
        """Where the log ended when the broker looked, which may be before it read."""
        self._source: RecordSource | None = None
        self._row = 0

    def decode(
        self,
        offset: int,
        end: int | None,
        *,
        check_crcs: bool,
        with_headers: bool,
        only: Collection[str] | None = None,
    ) -> Columns:
        """The rows from `offset` up to `end`; a damaged batch is a CorruptRecordError that says where it is.

        The rows before it come first, if there are any.
        """
        aborted = [(t.producer_id, t.first_offset) for t in self.answer.aborted_transactions or ()]
        read = partial(
            decode,
            from_offset=offset,
            up_to=end,
            check_crcs=check_crcs,
            with_headers=with_headers,
            only=only,
            aborted=aborted,
            below=self._below,
        )
        try:
            columns = read(self.records, asked=self._asked)
        except CorruptRecordError as error:
            damage = first_damage(self.records, self._asked, self._below, offset, check_crcs)
            if damage.after <= offset:
                # All of it lies before what was asked for.
                self.records, self._asked = self.records[damage.stop :], 0
                return self.decode(offset, end, check_crcs=check_crcs, with_headers=with_headers, only=only)
            good = read(self.records[: damage.start], asked=self._asked)
            if good.next_offset > offset:
                return good  # What lies before comes first.
            raise CorruptRecordError(
                f"{self.tp}, offset {max(damage.first, offset)}: {error}; "
                f"seek to offset {damage.after} to go on without it"
            ) from error
        if self.size_bytes and columns.next_offset <= offset:
            raise CorruptRecordError(
                f"{self.tp}: the {self.size_bytes} bytes fetched at offset {offset} hold no whole batch that reaches it"
            )
        return columns

    def unreadable(self) -> str:
        """The sentence where the broker itself cannot read its log (CORRUPT_MESSAGE)."""
        place = f"{self.tp}, offset {self.fetch_offset}: the broker's log is damaged there"
        after = self.answer.log_start_offset
        if after > self.fetch_offset:  # as our broker says it; Kafka's leaves it open
            return f"{place}; seek to offset {after} to go on without it"
        return f"{place}, and its own log says how to mend that; seek behind the damage to go on without it"

    def decode_all(
        self,
        offset: int,
        end: int | None,
        *,
        check_crcs: bool,
        with_headers: bool,
        only: Collection[str] | None = None,
    ) -> Iterator[Columns]:
        """As `decode`, in as many pieces as it takes: one may hold no more than 2 GiB."""
        left = end is None or offset < end
        while left:  # at least once: where headers say that there is nothing, they may be wrong
            columns = self.decode(offset, end, check_crcs=check_crcs, with_headers=with_headers, only=only)
            offset = columns.next_offset
            if columns.count:
                yield columns
            left = offset < (self.next_offset(offset) if end is None else min(end, self.next_offset(offset)))

    def next_offset(self, offset: int) -> int:
        """Where to read on after all of it, by the batch headers alone."""
        return max(offset, extent(self.records)[0])

    def last_epoch(self) -> int:
        """The leader's epoch in which the last batch was written, markers too; -1 when unknown."""
        return extent(self.records)[1]

    def fetch_records(
        self, most: int, offset: int, end: int | None, check_crcs: bool, deserializers: Any
    ) -> RecordSlice:
        """Up to `most` further records, from `offset` when it is the first portion; may be empty.

        Ends before a record that cannot be deserialized; where that is the first, RecordDeserializationError is raised,
        and again by the next call.
        """
        if self._source is None:
            columns = self.decode(offset, end, check_crcs=check_crcs, with_headers=True)
            self._source = RecordSource(*self.tp, columns, *deserializers)
        source, start = self._source, self._row
        stop = min(start + most, source.columns.count)
        if not source.deserializes:
            self._row = stop
            return RecordSlice(source, start, stop)
        keys, values, failure = source.deserialize(start, stop)
        stop = start + len(keys if keys is not None else values or ())
        if failure is not None and stop == start:
            raise failure
        self._row = stop
        return DeserializedSlice(source, start, stop, keys, values)

    def skip_to(self, offset: int) -> bool:
        """Leave out the rows before `offset`; False if this is not decoded or has nothing to return from there on."""
        source = self._source
        if source is None or not self.fetch_offset <= offset < source.columns.next_offset:
            return False
        self._row = bisect_left(source.columns.offsets, offset, self._row)
        self.fetch_offset = offset
        return True

    def position_after(self) -> tuple[int, int]:
        """Where to read on after what was taken so far, and the leader's epoch of what lies before that."""
        assert self._source is not None
        columns = self._source.columns
        if self.exhausted():
            return columns.next_offset, self.last_epoch()
        return columns.offsets[self._row - 1] + 1, columns.leader_epoch(self._row - 1)

    def left(self) -> int:
        """How many records are not handed out; by the batch headers, and so with markers, before they are decoded."""
        if self._source is None:
            return extent(self.records)[2]
        return self._source.columns.count - self._row

    def exhausted(self) -> bool:
        """Whether all records were taken."""
        return self._source is not None and self._row >= self._source.columns.count
