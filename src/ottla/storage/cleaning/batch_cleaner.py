"""Compaction of one batch: the result is the same bytes, fewer records, a header without records, or nothing.

Offsets do not change: a batch keeps its first and last one, its sequence, its epoch and its codec. A batch with remaining tombstones (or
a marker) gets the time from which they may be deleted as its base timestamp (KIP-534).
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model import Buffer, TimestampType
from ottla.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    HEADER_BYTES,
    BatchHeader,
    seal,
)
from ottla.records.compression import Codec, compress, decompress
from ottla.storage.cleaning.cleaned_transactions import CleanedTransactions
from ottla.storage.cleaning.key_map import KeyMap
from ottla.storage.cleaning.record_filter import RecordFilter, shift_times
from ottla.storage.producers.producer_state import LastRecord

NO_PRODUCERS: Mapping[int, LastRecord] = {}


class BatchCleaner:
    """Cleans the batches of a log, fed in their order, by the keys of `keys`."""

    def __init__(
        self,
        keys: KeyMap,
        *,
        now_ms: int,
        delete_retention_ms: int,
        upper_bound: int,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastRecord] = NO_PRODUCERS,
    ) -> None:
        """`upper_bound` is the offset up to which the log may be cleaned in this turn."""
        self._keys = keys
        self._filter = RecordFilter(keys)
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._upper_bound = upper_bound
        self._transactions = transactions
        self._producers = producers

    def clean(self, header: BatchHeader, data: memoryview) -> Buffer | None:
        """Return the bytes to write for a whole batch; None for nothing."""
        discarded = self._transactions.should_discard(header, data)
        stays = self._has_to_stay(header)
        due = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        if not header.count or (discarded and (not header.is_control or due)):
            return make_empty_batch(header) if stays else None
        if header.is_control:
            unneeded = discarded and not header.has_delete_horizon
            return self._with_horizon(header, data[HEADER_BYTES:], data) if unneeded else data
        if header.base_offset >= self._keys.end_offset:
            return data
        return self._clean_records(header, data, due) or (make_empty_batch(header) if stays else None)

    def _clean_records(self, header: BatchHeader, data: memoryview, due: bool) -> Buffer | None:
        records = decompress(header.codec, data[HEADER_BYTES:])
        found = self._filter
        kept = found.run(records, header.count, header.base_offset, due)
        if not kept:
            return None
        untouched = data if kept == header.count else None
        rest = memoryview(found.buffer)[: found.size]
        fewer = header._replace(count=kept, max_timestamp=latest_timestamp(header, found.latest))
        if found.tombstones and not header.has_delete_horizon:
            return self._with_horizon(fewer, rest, untouched)
        return pack_records(fewer, rest) if untouched is None else untouched

    def _with_horizon(self, header: BatchHeader, records: Buffer, untouched: memoryview | None) -> Buffer:
        """Return the batch with the time from which its tombstones may be deleted; without it if the timestamps leave no room for it."""
        shifted = shift_times(records, header.count, self._horizon_ms - header.base_timestamp)
        if shifted is None:
            return pack_records(header, records) if untouched is None else untouched
        attributes = header.attributes | DELETE_HORIZON
        return pack_records(header._replace(attributes=attributes, base_timestamp=self._horizon_ms), shifted)

    def _has_to_stay(self, header: BatchHeader) -> bool:
        """Return True if the header is needed without records: the batch is the last of a producer, or of the part that is compacted."""
        if header.next_offset == self._upper_bound:
            return True
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.offset < 0:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.offset


def latest_timestamp(header: BatchHeader, delta: int) -> int:
    """Return the batch's largest timestamp when the largest that stays is `delta` ms after its base."""
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp
    return min(header.base_timestamp + delta, header.max_timestamp)


def pack_records(header: BatchHeader, records: Buffer) -> bytes:
    """Return a batch of these records, compressed as it was."""
    return seal(header, records if header.codec is Codec.NONE else compress(header.codec, records))


def make_empty_batch(header: BatchHeader) -> bytes:
    """Return the header alone, as Kafka writes it: offsets, producer, epoch and sequence, and no records."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    return seal(header._replace(attributes=attributes, base_timestamp=-1, count=0), b"")
