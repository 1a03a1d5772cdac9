"""The producers of one partition and the transactions that are open in it: state that its batches make.

    check(headers) ──► append to the log ──► add(header)

`check` changes nothing, so that a failed append has not to be taken back. Batches without a producer id cost nothing
here. The one rule: the same batches make the same state, whether they are appended or read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.records.batch import BatchHeader
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker
from ottla.storage.producers.producer_entry import NONE, Origin, ProducerEntry, RememberedBatch

UNSURE = -1
"""In the place of a last stable offset: how the transaction ended is not known."""


class AbortedTxn(NamedTuple):
    """A range of records of one producer that `read_committed` consumers skip.

    If the transaction may have ended in a damaged range and its end is unknown, the records must not be read either. It is also kept as a
    row, which other readers of the file treat as an abort.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    last_stable_offset: int
    """The last stable offset of the partition after the end of the transaction: no transaction that ended later started before it."""

    @property
    def is_unsure(self) -> bool:
        """True if it is unknown that it was aborted; `last_offset` is the last one of the damaged range."""
        return self.last_stable_offset == UNSURE


def find_first_unsure(transactions: Iterable[AbortedTxn]) -> AbortedTxn | None:
    """Return the first transaction, by start offset, with an unknown end."""
    return min((each for each in transactions if each.is_unsure), key=lambda each: each.first_offset, default=None)


class LastRecord(NamedTuple):
    """By what compaction knows the batch that it must keep of a producer, be it emptied."""

    offset: int
    """The offset of its last data; -1 if its last batch is a marker of `epoch`."""
    epoch: int


class ProducerStateManager:
    """Everything a partition knows of producers."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        """Producer id → what is known of it."""
        self.open: dict[int, int] = {}
        """First offset → producer id of each open transaction, in the order of their offsets."""

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the first open transaction; None if none is open."""
        return next(iter(self.open), None)

    def check(
        self,
        headers: Sequence[BatchHeader],
        origin: Origin = Origin.CLIENT,
        markers: Sequence[EndMarker | None] = (),
        transaction_version: int = 0,
    ) -> RememberedBatch | None:
        """Check that these batches may be appended, in this order; return the first copy if a client repeats a batch.

        KafkaError is raised with INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE or
        TRANSACTION_COORDINATOR_FENCED. `markers` has one entry for each header, if any is a control batch.
        """
        ahead: dict[int, ProducerEntry] = {}
        for number, header in enumerate(headers):
            id_ = header.producer_id
            if id_ < 0:
                continue
            entry = ahead.get(id_) or self.entries.get(id_) or ProducerEntry(id_)
            marker = markers[number] if header.is_control and markers else None
            if marker is not None:
                entry.check_end(header.producer_epoch, marker, transaction_version)
            elif not header.is_control:
                if origin is Origin.CLIENT and not entry.is_continued_by(header):
                    repeated = entry.find_duplicate(header)
                    if repeated is not None:
                        return repeated
                entry.check_data(header, origin)
            if number + 1 < len(headers):
                ahead[id_] = entry = entry.copy()
                apply_batch(entry, header, marker, 0)
        return None

    def add(self, header: BatchHeader, marker: EndMarker | None, seen_ms: int) -> AbortedTxn | None:
        """Account for a batch in the log, checked or read again; the transaction that it aborted, if it did."""
        id_ = header.producer_id
        if id_ < 0 or (header.is_control and marker is None):
            return None
        entry = self.entries.get(id_)
        if entry is None:
            entry = self.entries[id_] = ProducerEntry(id_)
        began = entry.transaction_start
        apply_batch(entry, header, marker, seen_ms)
        if marker is None:
            if began != entry.transaction_start:
                self.open[entry.transaction_start] = id_
            return None
        if began < 0:
            return None
        self.open.pop(began, None)
        if marker.type is ControlType.COMMIT:
            return None
        stable = self.first_unstable_offset
        return AbortedTxn(id_, began, header.base_offset, header.base_offset + 1 if stable is None else stable)

    def record_lost_range(
        self, first_offset: int, next_offset: int, indexed: Mapping[tuple[int, int], AbortedTxn]
    ) -> list[AbortedTxn]:
        """Account for offsets that cannot be read: any transaction that is open there may have ended there.

        Aborted ones that the index contains, by producer and first offset, count as such; the other open ones have an unknown end.
        """
        ended = []
        for began, id_ in list(self.open.items()) if first_offset < next_offset else ():
            known = indexed.get((id_, began))
            if known is not None and known.last_offset >= next_offset:
                continue
            del self.open[began]
            self.entries[id_].transaction_start = NONE
            ended.append(known or AbortedTxn(id_, began, next_offset - 1, UNSURE))
        return sorted(ended, key=lambda each: each.last_offset)

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Take up what a snapshot had."""
        self.entries = {entry.producer_id: entry for entry in entries}
        self.open = dict(
            sorted(
                (entry.transaction_start, entry.producer_id)
                for entry in self.entries.values()
                if entry.transaction_start >= 0
            )
        )

    def expire(self, now_ms: int, expiration_ms: int) -> list[int]:
        """Forget the producers without a batch for that time, except those with an open transaction."""
        silent = [
            id_
            for id_, entry in self.entries.items()
            if entry.transaction_start < 0 and now_ms - entry.seen_ms >= expiration_ms
        ]
        for id_ in silent:
            del self.entries[id_]
        return silent

    def last_records(self) -> dict[int, LastRecord]:
        """Return the last record of each producer, which compaction must keep so that the sequence is not lost."""
        return {id_: LastRecord(entry.last_offset, entry.epoch) for id_, entry in self.entries.items()}

    def check_invariants(self) -> None:
        """Open transactions are in the order they began, and those of the entries."""
        assert list(self.open) == sorted(self.open)
        open_transactions = {
            entry.transaction_start: id_ for id_, entry in self.entries.items() if entry.transaction_start != NONE
        }
        assert open_transactions == self.open


def apply_batch(entry: ProducerEntry, header: BatchHeader, marker: EndMarker | None, seen_ms: int) -> None:
    """Change the state of the producer by a batch."""
    if marker is not None:
        entry.end_transaction(header.producer_epoch, marker, header.max_timestamp, seen_ms)
    elif not header.is_control:
        entry.add(header, seen_ms)
