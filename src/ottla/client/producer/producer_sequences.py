"""The numbers of an idempotent producer's batches, and what to do when a broker does not like them.

    drain ─► may_drain, number ─► on the wire ─► completed
                                            └► can_retry ─► drained again, in order, or `failed`
                                            └► `bump_needed`: a new epoch, numbers from 0 (KIP-360)

Why numbers. A broker that writes a batch and dies before it has answered leaves the producer in doubt; sent again,
the batch would be there twice. So each batch bears producer id, epoch, and the number of its first record in the
partition. The broker remembers the last five batches of a producer and partition: one that it has is answered with
the offset it got then, one that leaves a gap is refused (OUT_OF_ORDER_SEQUENCE_NUMBER).

It remembers no more than that, and so no more than five are without outcome at a time in a partition, wherever they are: where a leader is cut off
and another takes its place, some may be in flight to the old one that the new one has, and it must find them when they are sent again.

The price is that a number, once given, must be used: a batch that is given up leaves a gap that nothing after it can
pass. Where it certainly is not in the log the numbers begin anew under the next epoch (`bump`), batches in flight
included. Where nobody knows (`_unresolved`: it timed out) nothing new is numbered in that partition until what is in
flight there has its outcome: if the broker took the next number, the lost batch was written after all, and there is
no gap. A transaction needs none of this: it is aborted.

Pure, for the sender's thread. The rule: batches that have numbers go before all others, one at a time once one of them
had to be tried again, and only the first in flight is judged: what those behind it hear may be its fault.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import LAST_EPOCH, NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.txn_partition_entry import NONE, TxnPartitionEntry
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition

REMEMBERED = 5
"""The batches of a producer that a broker knows again, in a partition."""


class ProducerSequences:
    """The numbering of every partition."""

    def __init__(self, *, transactional: bool) -> None:
        self.producer = NO_PRODUCER
        self.bump_needed = False
        """Whether the numbers of some partition can only go on under another epoch."""
        self._transactional = transactional
        self._partitions: defaultdict[TopicPartition, TxnPartitionEntry] = defaultdict(TxnPartitionEntry)
        self._unresolved: set[TopicPartition] = set()
        """Where a batch was given up that may be in the log or not."""
        self._renumbered: set[TopicPartition] = set()

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether this batch, the first of its partition's queue, may be sent now."""
        entry = self._partitions[batch.tp]
        if not self.producer.is_known:
            return False
        if batch.has_sequence:
            return not entry.in_flight or entry.in_flight[0] is batch
        if batch.tp in self._unresolved or len(entry.in_flight) >= REMEMBERED:
            return False
        # A broker takes any number from a producer it does not know, so the first batch must be in before the second.
        return not entry.in_flight or (entry.producer == self.producer and entry.last_acked_sequence != NONE)

    def number(self, batch: ProducerBatch) -> None:
        """Number a batch that is about to be sent, unless it is sent again."""
        batch.sequence_reset = False
        if batch.has_sequence:
            return
        entry = self._partitions[batch.tp]
        if entry.producer != self.producer:
            entry.start(self.producer)
        entry.number(batch, self._transactional)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was too large for the broker: its parts have its numbers."""
        self._partitions[batch.tp].split(batch, parts)

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        last = base_offset + batch.count - 1 if base_offset >= 0 else NONE
        self._partitions[batch.tp].acked(batch, last)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether sending it again may help; may ask for a new epoch to do so."""
        entry = self._partitions[batch.tp]
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._can_retry_unknown(batch, entry, log_start_offset)
        if error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error.retriable
        waits = batch.sequence_reset or entry.in_flight[:1] != [batch]
        if batch.tp not in self._unresolved and waits:
            return True  # one before it failed; it is that one's turn
        return self._bump_unless_transactional(batch.tp)

    def failed(self, batch: ProducerBatch, *, certain: bool) -> None:
        """It is given up; `certain` tells that it is not in the log, so that its numbers leave a gap."""
        if not batch.has_sequence:
            return
        self._partitions[batch.tp].remove(batch)
        if certain:
            self._bump_unless_transactional(batch.tp)
        else:
            self._unresolved.add(batch.tp)

    def resolve(self) -> list[TopicPartition]:
        """Look at what was given up once nothing else is in flight there; the partitions in which it left a gap."""
        gaps = []
        for tp in list(self._unresolved):
            entry = self._partitions[tp]
            if entry.in_flight:
                continue
            self._unresolved.discard(tp)
            if not entry.is_next(entry.next_sequence):
                gaps.append(tp)
                self._bump_unless_transactional(tp)
        return gaps

    def bump(self) -> None:
        """Go on under the next epoch; without a producer id where there is no next one."""
        self.bump_needed = False
        known, used_up = self.producer.is_known, self.producer.epoch >= LAST_EPOCH
        if known:
            self.adopt(NO_PRODUCER if used_up else self.producer._replace(epoch=self.producer.epoch + 1))

    def adopt(self, producer: ProducerIdAndEpoch) -> None:
        """Go on under this id and epoch: at once where that was asked for, elsewhere when nothing is in flight."""
        self.producer = producer
        if producer.is_known:
            for tp in self._renumbered:
                self._partitions[tp].start(producer)
            self._renumbered.clear()

    def clear_unresolved(self) -> None:
        """A transaction has ended and the next has another epoch: nothing is left to be resolved."""
        self._unresolved.clear()

    def _can_retry_unknown(self, batch: ProducerBatch, entry: TxnPartitionEntry, log_start_offset: int) -> bool:
        """The broker has forgotten this producer: its records may all be gone, by age for instance."""
        if log_start_offset < 0 or batch.sequence_reset:
            return True
        if not self._transactional:
            return self._bump_unless_transactional(batch.tp)
        if entry.last_acked_offset < log_start_offset:
            entry.start(self.producer)
            return True
        return False

    def _bump_unless_transactional(self, tp: TopicPartition) -> bool:
        if self._transactional:
            return False
        self.bump_needed = True
        self._renumbered.add(tp)
        return True
