"""The sequence numbers of an idempotent producer's batches, and the reaction to sequence errors.

    drain ─► can_drain, assign_sequence ─► in flight ─► record_completed
                                            └► can_retry ─► drained again, in order, or `record_failed`
                                            └► `bump_needed`: a new epoch, numbers from 0 (KIP-360)

If a broker writes a batch and fails before it responds, the producer does not know whether it was written; a retry
would duplicate it. Therefore each batch has a producer id, an epoch, and the number of its first record in the
partition. The broker remembers the last five batches of each producer and partition. It answers a duplicate with the
original offset, and rejects a gap (OUT_OF_ORDER_SEQUENCE_NUMBER).

Because the broker remembers no more, at most five batches of a partition are without a result at a time, at any
brokers: after a leader change, some may be in flight to the old leader and stored by the new one, which must recognise
them when they are sent again.

A number, once assigned, must be used: a failed batch leaves a gap that later batches cannot pass. If the batch is
certainly not in the log, numbering restarts with the next epoch (`bump_epoch`), including batches in flight. If that is
unknown (`_unresolved`: the batch timed out), no new batch of the partition is numbered until those in flight have
results: if the broker accepted the next number, the lost batch was written, and there is no gap. A transaction needs
none of this: it is aborted.

Pure, for the sender thread. Batches with numbers are sent before all others, one at a time after one of them had to be
retried. Only the error of the first batch in flight is evaluated, because errors of later ones may be its consequence.
Corresponds to Java's TransactionManager and TxnPartitionMap (KIP-98, KIP-360).
"""

from __future__ import annotations

from collections import defaultdict

from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import LAST_EPOCH, NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.txn_partition_entry import NONE, TxnPartitionEntry
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition

REMEMBERED = 5
"""The number of batches per producer and partition that a broker remembers."""


class ProducerSequences:
    """The sequence numbers of all partitions."""

    def __init__(self, *, transactional: bool) -> None:
        self.producer = NO_PRODUCER
        self.bump_needed = False
        """True if some partition can continue only with another epoch."""
        self._transactional = transactional
        self._partitions: defaultdict[TopicPartition, TxnPartitionEntry] = defaultdict(TxnPartitionEntry)
        self._unresolved: set[TopicPartition] = set()
        """Partitions with a failed batch that may or may not be in the log."""
        self._renumbered: set[TopicPartition] = set()

    def can_drain(self, batch: ProducerBatch) -> bool:
        """Return True if this batch, the first of its queue, may be sent now."""
        entry = self._partitions[batch.tp]
        if not self.producer.is_known:
            return False
        if batch.has_sequence:
            return not entry.in_flight or entry.in_flight[0] is batch
        if batch.tp in self._unresolved or len(entry.in_flight) >= REMEMBERED:
            return False
        # A broker accepts any number from an unknown producer, so the first batch must be written before the second is
        # sent.
        return not entry.in_flight or (entry.producer == self.producer and entry.last_acked_sequence != NONE)

    def assign_sequence(self, batch: ProducerBatch) -> None:
        """Assign a sequence number to a batch that is about to be sent, unless it has one."""
        batch.sequence_reset = False
        if batch.has_sequence:
            return
        entry = self._partitions[batch.tp]
        if entry.producer != self.producer:
            entry.start_sequence(self.producer)
        entry.assign_sequence(batch, self._transactional)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts of a split batch its numbers."""
        self._partitions[batch.tp].split(batch, parts)

    def record_completed(self, batch: ProducerBatch, base_offset: int) -> None:
        last = base_offset + batch.count - 1 if base_offset >= 0 else NONE
        self._partitions[batch.tp].record_ack(batch, last)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return True if a retry may help; may request a new epoch for that."""
        entry = self._partitions[batch.tp]
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._can_retry_unknown(batch, entry, log_start_offset)
        if error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error.retriable
        waits = batch.sequence_reset or entry.in_flight[:1] != [batch]
        if batch.tp not in self._unresolved and waits:
            return True  # an earlier batch failed and must be retried first
        return self._bump_unless_transactional(batch.tp)

    def record_failed(self, batch: ProducerBatch, *, certain: bool) -> None:
        """Handle a failed batch. `certain` is True if it is not in the log, so that its numbers leave a gap."""
        if not batch.has_sequence:
            return
        self._partitions[batch.tp].remove(batch)
        if certain:
            self._bump_unless_transactional(batch.tp)
        else:
            self._unresolved.add(batch.tp)

    def resolve_failed_batches(self) -> list[TopicPartition]:
        """Check failed batches once nothing else is in flight in their partitions. Return the partitions with a gap."""
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

    def bump_epoch(self) -> None:
        """Continue with the next epoch; without a producer id if there is no next epoch."""
        self.bump_needed = False
        known, used_up = self.producer.is_known, self.producer.epoch >= LAST_EPOCH
        if known:
            self.set_producer(NO_PRODUCER if used_up else self.producer._replace(epoch=self.producer.epoch + 1))

    def set_producer(self, producer: ProducerIdAndEpoch) -> None:
        """Continue with this id and epoch: at once in partitions to be renumbered, in others when nothing is in flight."""
        self.producer = producer
        if producer.is_known:
            for tp in self._renumbered:
                self._partitions[tp].start_sequence(producer)
            self._renumbered.clear()

    def clear_unresolved(self) -> None:
        """Forget unresolved batches: the next transaction has another epoch."""
        self._unresolved.clear()

    def _can_retry_unknown(self, batch: ProducerBatch, entry: TxnPartitionEntry, log_start_offset: int) -> bool:
        """Handle UNKNOWN_PRODUCER_ID: all records of the producer may have been deleted, for example by retention."""
        if log_start_offset < 0 or batch.sequence_reset:
            return True
        if not self._transactional:
            return self._bump_unless_transactional(batch.tp)
        if entry.last_acked_offset < log_start_offset:
            entry.start_sequence(self.producer)
            return True
        return False

    def _bump_unless_transactional(self, tp: TopicPartition) -> bool:
        if self._transactional:
            return False
        self.bump_needed = True
        self._renumbered.add(tp)
        return True
