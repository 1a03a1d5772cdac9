"""The lock around a `TransactionMachine`, which users' threads and the sender's thread share.

An exception of a signal handler may end a call of the user's thread between any two bytecodes. Therefore the lock is
taken by `with manager.lock:`, which is one step of the interpreter (an `__enter__` in Python may be interrupted with the
lock held), and of the user's calls only those change the machine in the user's thread whose effect is one assignment.
The sender's thread runs the others (`Sender.decide`).

What concerns single batches, `sequences`, is the sender's alone, and needs no lock.
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
    """Who numbers the batches of a producer, and knows of its transactions."""

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
        """May be looked at without the lock, a field at a time."""
        self.sequences = self.machine.sequences
        self.check_send = self.machine.check_send
        self._taking_part = self.machine.contents.taking_part
        self._name = name
        self.events = events or EventStream()
        self.lock = threading.Lock()
        """Held for every look at more than one field of the machine, and for every change; `report` follows."""

    def report(self) -> None:
        """Log and trace what the machine went through. Called without the lock, after a change."""
        status = self.machine.status
        if not status.news and not status.passed:
            return
        with self.lock:
            news = status.take_news()
            changes = changes_of(status) if status.passed else ()
        if self.events.active:
            for change in changes:
                self.events.tell(change)
        for level, text in news:
            LOG.log(level, "[%s] %s", self._name, text)

    def send_to(self, tp: TopicPartition) -> bool:
        """Something is queued for this partition; whether it is new to the transaction. Each record tells."""
        if tp in self._taking_part:
            return False
        with self.lock:
            is_new = self.machine.send_to(tp)
        return is_new

    def fail_transaction(self, error: Exception) -> None:
        """A record of the transaction is lost: all of it must be aborted."""
        with self.lock:
            self.machine.fail_transaction(error)
        self.report()

    # What the accumulator and the sender ask of batches

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent."""
        if self.transactional_id is None:
            return self.sequences.may_drain(batch)
        with self.lock:
            return self.machine.may_drain(batch)

    def number(self, batch: ProducerBatch) -> None:
        """A batch is about to be sent."""
        self.sequences.number(batch)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether a refused batch may be sent again."""
        return not self.machine.status.is_fatal and self.sequences.can_retry(batch, error, log_start_offset)

    def batch_failed(self, batch: ProducerBatch, error: Exception, *, certain: bool) -> None:
        """A batch is given up; `certain` tells that it is not in the log."""
        with self.lock:
            self.sequences.failed(batch, certain=certain)
            self.machine.fail_transaction(error)
        self.report()


def changes_of(status: TransactionStatus) -> list[TransactionChanged]:
    """The states it went through; what went wrong is told with the last."""
    states = status.take_passed()
    changes = [TransactionChanged(before.name, state.name, "") for before, state in pairwise(states)]
    changes[-1] = changes[-1]._replace(error=str(status.error or ""))
    return changes
