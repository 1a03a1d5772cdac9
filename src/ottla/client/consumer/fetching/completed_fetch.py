"""The fetched data of one partition, until all its records are returned.

Pure. The data is decoded into columns once, when it is first needed; records are returned from these in portions.
Corresponds to Java's CompletedFetch.
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
    """Fetched data of one partition that is not fully returned yet."""

    __slots__ = (
        "_log_end",
        "_requested_offset",
        "_row",
        "_source",
        "fetch_offset",
        "leader_epoch",
        "records",
        "response",
        "size_bytes",
        "tp",
    )

    def __init__(self, tp: TopicPartition, fetch_offset: int, response: Any, leader_epoch: int) -> None:
        self.tp = tp
        self.leader_epoch = leader_epoch
        """The epoch of the leader at the time of the request; -1 if unknown."""
        self.fetch_offset = fetch_offset
        """The offset of the next record to return: first the requested offset, later the position in this data."""
        self.response = response
        self.records: memoryview = memoryview(b"") if response.records is None else response.records
        self.size_bytes = len(self.records)
        self._requested_offset = fetch_offset
        end = response.high_watermark
        self._log_end: int | None = end if end >= 0 else None
        """The high watermark in the response; None if unknown. The broker reads the records after it has looked up the
        high watermark, so the data may contain batches that start there.
        """
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
        """Decode the rows from `offset` up to `end`.

        At a damaged batch the rows before it are returned; if there are none, CorruptRecordError with the offset is
        raised.
        """
        aborted = [(t.producer_id, t.first_offset) for t in self.response.aborted_transactions or ()]
        read = partial(
            decode,
            from_offset=offset,
            up_to=end,
            check_crcs=check_crcs,
            with_headers=with_headers,
            only=only,
            aborted=aborted,
            below=self._log_end,
        )
        try:
            columns = read(self.records, asked=self._requested_offset)
        except CorruptRecordError as error:
            damage = first_damage(self.records, self._requested_offset, self._log_end, offset, check_crcs)
            if damage.next_offset <= offset:
                # The damaged batch ends before the requested offset.
                self.records, self._requested_offset = self.records[damage.end_position :], 0
                return self.decode(offset, end, check_crcs=check_crcs, with_headers=with_headers, only=only)
            intact = read(self.records[: damage.start_position], asked=self._requested_offset)
            if intact.next_offset > offset:
                return intact  # Return the rows before the damage first.
            raise CorruptRecordError(
                f"{self.tp}, offset {max(damage.first_offset, offset)}: {error}; seek to offset {damage.next_offset} to skip it"
            ) from error
        if self.size_bytes and columns.next_offset <= offset:
            raise CorruptRecordError(
                f"{self.tp}: the {self.size_bytes} bytes fetched at offset {offset} contain no complete batch with that offset"
            )
        return columns

    def corrupt_log_text(self) -> str:
        """Return the error text for CORRUPT_MESSAGE: the broker cannot read its own log."""
        location = f"{self.tp}, offset {self.fetch_offset}: the broker's log is damaged"
        after = self.response.log_start_offset
        if after > self.fetch_offset:  # Ottla's broker returns the offset after the damage here, Kafka's does not
            return f"{location}; seek to offset {after} to skip it"
        return f"{location}; see the broker's log messages for the repair, or seek to an offset after the damage"

    def decode_all(
        self,
        offset: int,
        end: int | None,
        *,
        check_crcs: bool,
        with_headers: bool,
        only: Collection[str] | None = None,
    ) -> Iterator[Columns]:
        """Decode as `decode` does, in several parts if needed: one part holds at most 2 GiB."""
        has_more = end is None or offset < end
        while has_more:  # decode at least once, because the headers may be wrong and hide records
            columns = self.decode(offset, end, check_crcs=check_crcs, with_headers=with_headers, only=only)
            offset = columns.next_offset
            if columns.count:
                yield columns
            has_more = offset < (self.next_offset(offset) if end is None else min(end, self.next_offset(offset)))

    def next_offset(self, offset: int) -> int:
        """Return the next offset after all batches, read from the batch headers only."""
        return max(offset, extent(self.records)[0])

    def last_epoch(self) -> int:
        """Return the leader epoch of the last batch, control batches included; -1 if unknown."""
        return extent(self.records)[1]

    def fetch_records(
        self, max_records: int, offset: int, end: int | None, check_crcs: bool, deserializers: Any
    ) -> RecordSlice:
        """Return up to `max_records` further records; may be empty.

        `offset` and `end` are used only by the first call, which decodes the data.

        The records end before one that cannot be deserialized. If that is the first record, RecordDeserializationError
        is raised, and raised again by the next call.
        """
        if self._source is None:
            columns = self.decode(offset, end, check_crcs=check_crcs, with_headers=True)
            self._source = RecordSource(*self.tp, columns, *deserializers)
        source, start = self._source, self._row
        stop = min(start + max_records, source.columns.count)
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
        """Skip the rows before `offset`.

        Return False if the data is not decoded yet, or if `offset` is outside the rows not returned yet.
        """
        source = self._source
        if source is None or not self.fetch_offset <= offset < source.columns.next_offset:
            return False
        self._row = bisect_left(source.columns.offsets, offset, self._row)
        self.fetch_offset = offset
        return True

    def position_after_taken(self) -> tuple[int, int]:
        """Return the next offset after the records taken so far, and the leader epoch of the last record taken."""
        assert self._source is not None
        columns = self._source.columns
        if self.is_exhausted():
            return columns.next_offset, self.last_epoch()
        return columns.offsets[self._row - 1] + 1, columns.leader_epoch(self._row - 1)

    def remaining_count(self) -> int:
        """Return the number of records not returned yet.

        Before decoding, this is the sum of the record counts in the batch headers, which includes control records.
        """
        if self._source is None:
            return extent(self.records)[2]
        return self._source.columns.count - self._row

    def is_exhausted(self) -> bool:
        """Return True if all records were taken."""
        return self._source is not None and self._row >= self._source.columns.count
