"""The acquired records of one partition in a ShareFetch response, until they are returned. Pure.

A response has whole record batches, of which the broker has acquired ranges of offsets for this member. The rows outside
of the ranges belong to other members and are skipped. An acquired offset without a row is a gap, which the client
acknowledges itself: it belongs to a control record, or compaction has removed the record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.client.consumer.fetching.damage import first_damage
from ottla.client.consumer.record import RecordSource
from ottla.client.consumer.records import DeserializedSlice, RecordSlice
from ottla.client.share.state.acknowledgements import GAP, AcknowledgeType, ShareTopicPartition
from ottla.errors import CorruptRecordError, OttlaError, RecordDeserializationError
from ottla.protocol.messages.share_fetch import AcquiredRecords
from ottla.records.columns import Columns, decode


class DeliveredPortion(NamedTuple):
    """A part of acquired records that is returned to the user."""

    slices: list[RecordSlice]
    automatic: dict[int, int]
    """Acknowledgements that the client makes itself."""
    failed: tuple[int, ...]
    """The offsets of records that could not be read."""
    error: OttlaError | None
    """The error of the record after `slices`, which is acknowledged automatically."""

    @property
    def record_count(self) -> int:
        return sum(map(len, self.slices))


class CompletedShareFetch:
    """The acquired records of one partition that are not fully returned yet."""

    def __init__(
        self,
        partition: ShareTopicPartition,
        node_id: int,
        generation: int,
        records: Any,
        acquired: Sequence[AcquiredRecords],
        *,
        deserializers: tuple[Any, Any] = (None, None),
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.node_id = node_id
        self.generation = generation
        """The share session of the response."""
        self.size_bytes = len(records or b"")
        self._records = memoryview(records or b"")
        self._ranges = [(each.first_offset, each.last_offset, each.delivery_count) for each in acquired]
        self._deserializers = deserializers
        self._check_crcs = check_crcs
        self._source: RecordSource | None = None
        self._runs: list[tuple[int, int]] = []
        """The rows that are left to return, as ranges."""
        self._automatic: dict[int, int] = {}
        self._damage: tuple[tuple[int, ...], CorruptRecordError] | None = None

    @property
    def acquired_count(self) -> int:
        """The number of acquired offsets."""
        return sum(last - first + 1 for first, last, _ in self._ranges)

    @property
    def is_exhausted(self) -> bool:
        """True if everything was returned."""
        return self._source is not None and not self._runs and not self._automatic and self._damage is None

    def fetch_records(self, max_records: int) -> DeliveredPortion:
        """Return up to `max_records` further records.

        The portion ends before a record that cannot be deserialized or is damaged. If nothing precedes it, the portion
        has its error, and its automatic acknowledgement: RELEASE if it cannot be deserialized, REJECT if it is damaged.
        """
        if self._source is None:
            self._source = self._decode()
        source, slices, left = self._source, [], max_records
        error: OttlaError | None = None
        failed: tuple[int, ...] = ()
        automatic, self._automatic = self._automatic, {}
        while self._runs and left > 0:
            start, stop = self._runs[0]
            stop = min(stop, start + left)
            part, failure = self._slice(source, start, stop)
            if len(part):
                slices.append(part)
                left -= len(part)
            self._advance(part.stop)
            if failure is not None:
                if slices:
                    break
                error, failed = explain_failure(failure, self.partition), (failure.offset,)
                automatic[failure.offset] = AcknowledgeType.RELEASE
                self._advance(part.stop + 1)
                break
        if not self._runs and not slices and error is None and self._damage is not None:
            failed, error = self._damage
            for offset in failed:
                automatic.pop(offset, None)
            automatic.update(dict.fromkeys(failed, int(AcknowledgeType.REJECT)))
            self._damage = None
        return DeliveredPortion(slices, automatic, failed, error)

    def _slice(
        self, source: RecordSource, start: int, stop: int
    ) -> tuple[RecordSlice, RecordDeserializationError | None]:
        if not source.deserializes:
            return RecordSlice(source, start, stop), None
        keys, values, failure = source.deserialize(start, stop)
        stop = start + len(keys if keys is not None else values or ())
        return DeserializedSlice(source, start, stop, keys, values), failure

    def _advance(self, row: int) -> None:
        """Continue at `row`."""
        _, stop = self._runs[0]
        if row < stop:
            self._runs[0] = row, stop
        else:
            self._runs.pop(0)

    def _decode(self) -> RecordSource:
        """Decode the records, find the acquired rows, and the acquired offsets without a row."""
        columns, damaged = self._read_columns()
        counts = array("h", bytes(2 * columns.count))
        offsets = columns.offsets
        for first, last, count in self._ranges:
            start, stop = bisect_left(offsets, first), bisect_left(offsets, last + 1)
            counts[start:stop] = array("h", (count,)) * (stop - start)
            if start < stop:
                if self._runs and self._runs[-1][1] == start:
                    self._runs[-1] = self._runs[-1][0], stop
                else:
                    self._runs.append((start, stop))
            if stop - start != last - first + 1:
                self._automatic.update(dict.fromkeys(set(range(first, last + 1)).difference(offsets[start:stop]), GAP))
        if damaged is not None:
            first_damaged, end_of_damage, error = damaged
            unread = sorted(offset for offset in self._automatic if offset >= first_damaged)
            lost = tuple(offset for offset in unread if offset < end_of_damage)
            if lost:
                self._damage = lost, error
            for offset in unread:
                self._automatic[offset] = int(AcknowledgeType.RELEASE)  # delivered again, after the damage is rejected
        return RecordSource(*self.partition.tp, columns, *self._deserializers, counts)

    def _read_columns(self) -> tuple[Columns, tuple[int, int, CorruptRecordError] | None]:
        """Decode all batches. If one is damaged, return the rows before it, the range of its offsets, and the error."""
        try:
            return decode(self._records, check_crcs=self._check_crcs), None
        except CorruptRecordError as error:
            damage = first_damage(self._records, 0, None, 0, self._check_crcs)
            last = damage.next_offset - 1
            text = f"{self.partition}, offsets {damage.first_offset} to {last}: {error}; these records are rejected"
            intact = decode(self._records[: damage.start_position], check_crcs=self._check_crcs)
            return intact, (damage.first_offset, damage.next_offset, CorruptRecordError(text))


def explain_failure(failure: RecordDeserializationError, partition: ShareTopicPartition) -> RecordDeserializationError:
    """Return the error of a record that cannot be deserialized, with the remedies of a share consumer."""
    cause = failure.__cause__
    error = RecordDeserializationError(
        f"{failure.origin}.deserializer failed on {partition} at offset {failure.offset}: {type(cause).__name__}: {cause}; "
        f"the record is released; to reject it, call acknowledge({partition.topic!r}, {partition.partition}, "
        f"{failure.offset}, AcknowledgeType.REJECT) with share.acknowledgement.mode=explicit",
        partition.tp,
        failure.offset,
        failure.origin,
        failure.record,
    )
    error.__cause__ = cause
    return error
