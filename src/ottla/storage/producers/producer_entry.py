"""The state of one producer in a partition, and the batches that are accepted from it next. Works on headers, without files.

The rules are those of Kafka's leader (KIP-98, KIP-360): sequences count records, continue without a gap from batch to
batch, wrap around after 2^31 - 1, and start at 0 in each epoch.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import NamedTuple

from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.records.batch import BatchHeader
from ottla.records.end_marker import EndMarker

MAX_SEQUENCE = 0x7FFF_FFFF
"""The sequence after which comes 0; the mask of all that there are, too."""
REMEMBERED = 5
"""Batches by which a repeat is known: as many as an idempotent producer may have under way."""
NONE = -1
"""No epoch, no sequence, no offset."""
EPOCH_BUMPED_SINCE = 2
"""From this `transaction.version` on a transaction's end has an epoch of its own, above that of its data (KIP-890)."""


class Origin(Enum):
    """The source of an append, which decides the checks."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    """The broker itself on behalf of a producer: markers, and offsets of a transaction. There are no sequences."""


class RememberedBatch(NamedTuple):
    """A batch by which its repeat is known."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """From the first record of the batch to the last, in offsets and in sequences."""
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "seen_ms",
        "transaction_start",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NONE,
        coordinator_epoch: int = NONE,
        last_timestamp: int = NONE,
        transaction_start: int = NONE,
        seen_ms: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        """The timestamp of its last records."""
        self.transaction_start = transaction_start
        """The first offset of its open transaction, -1 where there is none."""
        self.seen_ms = seen_ms
        """The time of its last batch by the broker's clock; the timestamps of records may be arbitrary."""
        self.batches: deque[RememberedBatch] = deque(maxlen=REMEMBERED)
        """The latest of the present epoch."""

    def __repr__(self) -> str:
        return f"ProducerEntry({self.producer_id}, epoch {self.epoch}, {list(self.batches)})"

    @property
    def last_sequence(self) -> int:
        """-1 where it has written nothing in its epoch."""
        return self.batches[-1].last_sequence if self.batches else NONE

    @property
    def last_offset(self) -> int:
        """The offset of its last record; -1 if it has written nothing in its epoch."""
        return self.batches[-1].last_offset if self.batches else NONE

    def copy(self) -> ProducerEntry:
        """Return an entry that can change by itself."""
        copied = ProducerEntry(
            self.producer_id,
            self.epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.transaction_start,
            self.seen_ms,
        )
        copied.batches.extend(self.batches)
        return copied

    def find_duplicate(self, header: BatchHeader) -> RememberedBatch | None:
        """Return the batch that is there already and that this one repeats."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, last_sequence(header)
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def is_continued_by(self, header: BatchHeader) -> bool:
        """Return True if the batch is the next one of the epoch, as nearly every batch is."""
        return header.producer_epoch == self.epoch and (
            bool(self.batches) and header.base_sequence == (self.batches[-1].last_sequence + 1) & MAX_SEQUENCE
        )

    def check_data(self, header: BatchHeader, origin: Origin) -> None:
        """Refuse a batch of an older epoch, out of sequence, or outside of the transaction that is open."""
        if not self.is_continued_by(header):
            self._check_epoch(header.producer_epoch)
            if origin is Origin.CLIENT:
                self._check_sequence(header)
        if self.transaction_start >= 0 and not header.is_transactional:
            raise error_for(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {self.producer_id} has a transaction open here, and this batch is not part of it",
            )

    def check_end(self, producer_epoch: int, marker: EndMarker, transaction_version: int) -> None:
        """Reject the end of a transaction that is late, or that a former coordinator has sent."""
        if transaction_version >= EPOCH_BUMPED_SINCE and producer_epoch == self.epoch:
            # Without an open transaction it is a repetition after a lost response (KAFKA-19999).
            if self.transaction_start >= 0:
                raise self._old_epoch(producer_epoch)
        else:
            self._check_epoch(producer_epoch)
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise error_for(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the coordinator of producer {self.producer_id} has epoch {self.coordinator_epoch}, "
                f"not {marker.coordinator_epoch} any more",
            )

    def add(self, header: BatchHeader, seen_ms: int) -> None:
        """Remember a batch of data that was appended."""
        self._set_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        self.batches.append(RememberedBatch(last_sequence(header), header.last_offset, delta, header.max_timestamp))
        self.last_timestamp, self.seen_ms = header.max_timestamp, seen_ms
        if self.transaction_start < 0 and header.is_transactional:
            self.transaction_start = header.base_offset

    def end_transaction(self, producer_epoch: int, marker: EndMarker, timestamp: int, seen_ms: int) -> None:
        """Close the transaction, if one is open."""
        self._set_epoch(producer_epoch)
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp, self.seen_ms = timestamp, seen_ms
        self.transaction_start = NONE

    def _set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise self._old_epoch(epoch)

    def _old_epoch(self, epoch: int) -> KafkaError:
        return error_for(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {self.producer_id} is at epoch {self.epoch} here, {epoch} is over: another one took its place",
        )

    def _check_sequence(self, header: BatchHeader) -> None:
        sequence = header.base_sequence
        if self.epoch == NONE:
            # Nothing is known of it: all it wrote may have been deleted, or be too long ago.
            return
        expected = 0 if header.producer_epoch != self.epoch else (self.last_sequence + 1) & MAX_SEQUENCE
        if sequence != expected:
            raise error_for(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {self.producer_id}, epoch {header.producer_epoch}: sequence {sequence} arrived where "
                f"{expected} was to come",
            )


def last_sequence(header: BatchHeader) -> int:
    """Return the sequence of a batch's last record; -1 where its records have none."""
    return NONE if header.base_sequence < 0 else (header.base_sequence + header.last_offset_delta) & MAX_SEQUENCE
