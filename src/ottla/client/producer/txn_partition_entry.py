"""What an idempotent producer knows of one partition: which numbers it gave out, and which were acknowledged.

Pure, for the sender's thread.
"""

from __future__ import annotations

from ottla.client.producer.producer_batch import MAX_SEQUENCE, ProducerBatch
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch

NONE = -1


def following(sequence: int, count: int) -> int:
    """The number `count` records after `sequence`; after the last one comes 0."""
    return (sequence + count) & MAX_SEQUENCE


class TxnPartitionEntry:
    """The numbering of one partition under one producer id and epoch."""

    __slots__ = ("in_flight", "last_acked_offset", "last_acked_sequence", "next_sequence", "producer")

    def __init__(self) -> None:
        self.producer = NO_PRODUCER
        self.next_sequence = 0
        self.last_acked_sequence = NONE
        self.last_acked_offset = NONE
        self.in_flight: list[ProducerBatch] = []
        """Batches with numbers and without outcome, sent or waiting to be sent again, by their numbers."""

    def start(self, producer: ProducerIdAndEpoch) -> None:
        """Number from 0 again, under another id or epoch; what is in flight takes the first numbers."""
        self.producer, self.next_sequence, self.last_acked_sequence = producer, 0, NONE
        for batch in self.in_flight:
            self._give_numbers(batch, batch.transactional)

    def number(self, batch: ProducerBatch, transactional: bool) -> None:
        """Give a batch its numbers."""
        self._give_numbers(batch, transactional)
        self.in_flight.append(batch)

    def acked(self, batch: ProducerBatch, last_offset: int) -> None:
        """The batch is in the log."""
        last = following(batch.base_sequence, batch.count - 1)
        if self.last_acked_sequence == NONE or following(last, -self.last_acked_sequence) <= MAX_SEQUENCE // 2:
            self.last_acked_sequence = last
        self.last_acked_offset = max(self.last_acked_offset, last_offset)
        self.remove(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """The batch has an outcome; one that was given up before is not there any more."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The parts share the numbers of the whole."""
        if batch in self.in_flight:
            place = self.in_flight.index(batch)
            self.in_flight[place : place + 1] = parts

    def is_next(self, sequence: int) -> bool:
        """Whether everything before this number is acknowledged."""
        if self.last_acked_sequence == NONE:
            return sequence == 0
        return sequence == following(self.last_acked_sequence, 1)

    def _give_numbers(self, batch: ProducerBatch, transactional: bool) -> None:
        batch.number(self.producer, self.next_sequence, transactional)
        self.next_sequence = following(self.next_sequence, batch.count)
