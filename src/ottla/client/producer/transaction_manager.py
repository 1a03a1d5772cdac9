"""The lock around a `TransactionMachine`, which users' threads and the sender thread share.

An exception of a signal handler may end a call of the user's thread between any two bytecodes. Therefore the lock is
acquired with `with manager.lock:`, which is one step of the interpreter (an `__enter__` in Python might be interrupted
with the lock held). In the user's thread, only calls change the machine that have the effect of one assignment; the
sender thread runs the others (`Sender.submit_call`).

The sequence numbers of batches, `sequences`, are used by the sender thread only and need no lock.
"""

from __future__ import annotations

import logging
import threading
from itertools import pairwise

from ottla.client.producer.events import TransactionChanged
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.transactions.transaction_machine import TransactionMachine
from ottla.client.producer.transactions.transaction_status import TransactionStatus
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.trace import EventStream

LOG = logging.getLogger(__name__)


class TransactionManager:
    """Numbers the batches of a producer and manages its transactions."""

    def __init__(
        self,
        *,
        name: str,
        backoff: ExponentialBackoff,
        transactional_id: str | None = None,
        timeout_ms: int = 60_000,
        events: EventStream | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.machine = TransactionMachine(backoff, transactional_id, timeout_ms)
        """Single fields may be read without the lock."""
        self.sequences = self.machine.sequences
        self.check_send = self.machine.check_send
        self._taking_part = self.machine.contents.taking_part
        self._name = name
        self.events = events or EventStream()
        self.lock = threading.Lock()
        """Held for reading more than one field of the machine and for every change; `report_changes` follows."""

    def report_changes(self) -> None:
        """Log and trace the changes of the machine. Called without the lock, after a change."""
        status = self.machine.status
        if not status.log_lines and not status.left_states:
            return
        with self.lock:
            news = status.take_log_lines()
            changes = list_changes(status) if status.left_states else ()
        if self.events.active:
            for change in changes:
                self.events.publish(change)
        for level, text in news:
            LOG.log(level, "[%s] %s", self._name, text)

    def add_partition(self, tp: TopicPartition) -> bool:
        """Add a partition to the transaction, for each queued record. Return True if it is new."""
        if tp in self._taking_part:
            return False
        with self.lock:
            is_new = self.machine.add_partition(tp)
        return is_new

    def fail_transaction(self, error: Exception) -> None:
        """Record that a record of the transaction has failed: the transaction must be aborted."""
        with self.lock:
            self.machine.fail_transaction(error)
        self.report_changes()

    # Called by the accumulator and the sender for batches.

    def can_drain(self, batch: ProducerBatch) -> bool:
        """Return True if the first batch of a queue may be sent."""
        if self.transactional_id is None:
            return self.sequences.can_drain(batch)
        with self.lock:
            return self.machine.can_drain(batch)

    def assign_sequence(self, batch: ProducerBatch) -> None:
        """Assign a sequence number to a batch that is about to be sent."""
        self.sequences.assign_sequence(batch)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return True if a rejected batch may be retried."""
        return not self.machine.status.is_fatal and self.sequences.can_retry(batch, error, log_start_offset)

    def record_batch_failure(self, batch: ProducerBatch, error: Exception, *, certain: bool) -> None:
        """Handle a failed batch. `certain` is True if it is not in the log."""
        with self.lock:
            self.sequences.record_failed(batch, certain=certain)
            self.machine.fail_transaction(error)
        self.report_changes()


def list_changes(status: TransactionStatus) -> list[TransactionChanged]:
    """Return the state changes; the last one has the error."""
    states = status.take_states()
    changes = [TransactionChanged(before.name, state.name, "") for before, state in pairwise(states)]
    changes[-1] = changes[-1]._replace(error=str(status.error or ""))
    return changes
