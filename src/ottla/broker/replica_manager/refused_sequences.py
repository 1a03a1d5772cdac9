"""The lowest sequences that were rejected, of producers without state in a partition (KIP-890).

A leader checks that the sequences of a producer have no gap, but an unknown producer may start with any sequence, since
its older batches may have been deleted. A client has up to five batches in flight. If the first is rejected for a while
and the second is appended, the first can never be appended: the client repeats it until its delivery timeout.

    batch 0 ──► CONCURRENT_TRANSACTIONS, lowest = 0
    batch 78 ─► OUT_OF_ORDER_SEQUENCE_NUMBER, because 78 is above the lowest; the client sends it again after batch 0
    batch 0 ──► appended; from now on the log knows the producer, and the entry is deleted

Kafka keeps this for transactions with a partition that is being verified (`VerificationStateEntry`). Here it is kept
for every error after which a client sends the batch again, including idempotent producers without a transaction, and
also for partitions that this broker does not lead or does not know yet. It is not stored: after a restart of the broker
a client starts with its lowest batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from msgspec import Struct

from ottla.errors import RETRIABLE, ErrorCode, KafkaError, error_for
from ottla.model import Buffer, TopicPartition
from ottla.records.batch import HEADER_BYTES, MAGIC, MAGIC_POSITION, BatchHeader, parse_header
from ottla.storage.producers.producer_entry import MAX_SEQUENCE, ProducerEntry

KEPT_SECONDS = 300.0
"""The lifetime of an entry after its last rejected batch. Clients repeat a batch at least once a second."""
CAPACITY = 10_000
"""The maximum number of entries, as a client can use any number of producer ids; the oldest is dropped."""
HALF = (MAX_SEQUENCE + 1) // 2

Key = tuple[str | uuid.UUID, int, int]
"""Topic name or id, partition, producer id."""


class LowestSequence(Struct):
    """The lowest refused sequence of one producer in one partition."""

    epoch: int
    sequence: int
    refused_at: float
    """When it was refused last, by the monotonic clock."""


class RejectedSequences:
    """The lowest rejected sequences of a broker. Nearly always empty, and false then."""

    def __init__(self) -> None:
        self._lowest: dict[Key, LowestSequence] = {}
        """Ordered by the time of the last refusal."""

    def __len__(self) -> int:
        return len(self._lowest)

    def record_refusal(
        self, topic: str | uuid.UUID, partition: int, records: Buffer | None, code: int, now: float
    ) -> None:
        """Remember a refused batch, if its client sends it again after that code and its records have sequences."""
        header = sequenced_header(records)
        if header is not None and is_sent_again(header, code):
            self.note_header((topic, partition, header.producer_id), header, now)

    def note_header(self, key: Key, header: BatchHeader, now: float) -> None:
        """Lower the lowest sequence to that of a refused batch; a newer epoch replaces an older one."""
        known = self._lowest.get(key)
        if known is not None and not is_expired(known, now):
            if header.producer_epoch < known.epoch:
                return
            if header.producer_epoch == known.epoch and is_after(header.base_sequence, known.sequence):
                return
        self._lowest.pop(key, None)
        self._lowest[key] = LowestSequence(header.producer_epoch, header.base_sequence, now)
        self._drop_old(now)

    def ensure_lowest(
        self,
        place: TopicPartition,
        topic_id: uuid.UUID,
        records: Buffer,
        entries: Mapping[int, ProducerEntry],
        now: float,
    ) -> None:
        """Raise OUT_OF_ORDER_SEQUENCE_NUMBER for a batch above a refused one; `entries` are the producers that the log knows."""
        header = sequenced_header(records)
        if header is not None:
            self.ensure_header(place, topic_id, header, entries.get(header.producer_id), now)

    def ensure_header(
        self, place: TopicPartition, topic_id: uuid.UUID, header: BatchHeader, entry: ProducerEntry | None, now: float
    ) -> None:
        """Raise the same for the header of a batch; `entry` is what the log knows of its producer."""
        for topic in (topic_id, place.topic):
            key = topic, place.partition, header.producer_id
            lowest = self._lowest.get(key)
            if lowest is None:
                continue
            # A log that knows the producer finds a gap by itself.
            if entry is not None or header.producer_epoch > lowest.epoch or is_expired(lowest, now):
                del self._lowest[key]
            elif header.producer_epoch == lowest.epoch and is_after(header.base_sequence, lowest.sequence):
                raise build_error(header, lowest.sequence)

    def _drop_old(self, now: float) -> None:
        while self._lowest:
            key, oldest = next(iter(self._lowest.items()))
            if len(self._lowest) <= CAPACITY and not is_expired(oldest, now):
                return
            del self._lowest[key]


def sequenced_header(records: Buffer | None) -> BatchHeader | None:
    """Return the header of a batch with sequences, or None."""
    if records is None or len(records) < HEADER_BYTES or records[MAGIC_POSITION] != MAGIC:
        return None
    header = parse_header(records)
    return None if header.producer_id < 0 or header.base_sequence < 0 or header.is_control else header


def is_sent_again(header: BatchHeader, code: int) -> bool:
    """Return True if clients repeat the batch, or split it in two with the same sequences, after that code."""
    return code in RETRIABLE or (code == ErrorCode.MESSAGE_TOO_LARGE and header.count > 1)


def is_after(sequence: int, other: int) -> bool:
    """Return True if a sequence comes after another; after 2^31 - 1 comes 0."""
    return 0 < (sequence - other) & MAX_SEQUENCE < HALF


def is_expired(lowest: LowestSequence, now: float) -> bool:
    return now - lowest.refused_at >= KEPT_SECONDS


def build_error(header: BatchHeader, lowest: int) -> KafkaError:
    """Return the error for a batch that must wait for an earlier one."""
    return error_for(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {header.base_sequence} came before "
        f"{lowest}, which has to be sent again first",
    )
