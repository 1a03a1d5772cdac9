"""The sequence numbers of an idempotent producer in one partition. Pure, for the sender thread.

Corresponds to Java's TxnPartitionEntry.
"""

from __future__ import annotations

from ottla.client.producer.producer_batch import MAX_SEQUENCE, ProducerBatch
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch

NONE = -1


def advance_sequence(sequence: int, count: int) -> int:
    """Return the number `count` records after `sequence`; the number after the last one is 0."""
    return (sequence + count) & MAX_SEQUENCE


class TxnPartitionEntry:
    """The sequence numbers of one partition with one producer id and epoch."""

    __slots__ = ("in_flight", "last_acked_offset", "last_acked_sequence", "next_sequence", "producer")

    def __init__(self) -> None:
        self.producer = NO_PRODUCER
        self.next_sequence = 0
        self.last_acked_sequence = NONE
        self.last_acked_offset = NONE
        self.in_flight: list[ProducerBatch] = []
        """Batches with numbers and without a result, in flight or waiting for a retry, in order."""

    def start_sequence(self, producer: ProducerIdAndEpoch) -> None:
        """Restart at 0 with another id or epoch. Batches in flight get the first numbers."""
        self.producer, self.next_sequence, self.last_acked_sequence = producer, 0, NONE
        for batch in self.in_flight:
            self._renumber_batches(batch, batch.transactional)

    def assign_sequence(self, batch: ProducerBatch, transactional: bool) -> None:
        """Assign a sequence number to a batch."""
        self._renumber_batches(batch, transactional)
        self.in_flight.append(batch)

    def record_ack(self, batch: ProducerBatch, last_offset: int) -> None:
        """Record that a batch was written."""
        last = advance_sequence(batch.base_sequence, batch.count - 1)
        if self.last_acked_sequence == NONE or advance_sequence(last, -self.last_acked_sequence) <= MAX_SEQUENCE // 2:
            self.last_acked_sequence = last
        self.last_acked_offset = max(self.last_acked_offset, last_offset)
        self.remove(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch with a result, if it was not removed before."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a split batch by its parts."""
        if batch in self.in_flight:
            place = self.in_flight.index(batch)
            self.in_flight[place : place + 1] = parts

    def is_next(self, sequence: int) -> bool:
        """Return True if all batches with a lower sequence number are acknowledged."""
        if self.last_acked_sequence == NONE:
            return sequence == 0
        return sequence == advance_sequence(self.last_acked_sequence, 1)

    def _renumber_batches(self, batch: ProducerBatch, transactional: bool) -> None:
        batch.assign_sequence(self.producer, self.next_sequence, transactional)
        self.next_sequence = advance_sequence(self.next_sequence, batch.count)
