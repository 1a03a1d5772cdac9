"""The loop: what was read, what came of it and how far it was read go together, or not at all.

Written as calls, for clients that block and for those that are awaited. Sending waits where the producer's buffer is
full, and nothing is read meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.process.calls import Call, Calls
from ottla.client.process.delivery import POISON, Delivery
from ottla.client.process.form import Form, Reached, buried
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.settings import ProcessSettings
from ottla.errors import (
    BufferExhaustedError,
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RecordDeserializationError,
    TransactionAbortableError,
    WakeupError,
)
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
"""How long a poll waits while nothing is under way."""
GIVE_UP_SECONDS = 1.0
"""How long an exception waits until what is under way is aborted; after that the coordinator does it."""
VAIN = (TransactionAbortableError, CommitFailedError, BufferExhaustedError)
"""After these what is under way comes to nothing, and is read again."""


class Loop:
    """Reads, has it processed, sends, commits, until `stopping`."""

    def __init__(
        self, consumer: Any, producer: Any, form: Form, settings: ProcessSettings, now: Callable[[], float]
    ) -> None:
        self.stopping = False
        self._consumer = consumer
        self._producer = producer
        self._form = form
        self._settings = settings
        self._now = now
        self._delivery = Delivery(producer, settings.to)
        self._due_at: float | None = None
        """When what is under way is to count; None where nothing is."""
        self._last_due_at = FOREVER
        """When the last commit was begun."""
        self._committing = False
        self._first: dict[TopicPartition, int] = {}
        """Where each partition is to be read again from, if it comes to nothing."""
        self._next: dict[TopicPartition, OffsetAndMetadata] = {}
        """How far each has been read."""

    def run(self) -> Calls[None]:
        """Until it is to stop; then what is under way counts still."""
        if self._settings.exactly_once:
            yield self._producer.init_transactions
        while not self.stopping:
            yield from self._turn()
        yield from self.finish()

    def finish(self) -> Calls[None]:
        """Let what is under way count."""
        if self._due_at is None:
            return
        self._last_due_at = self._now()
        try:
            if self._settings.exactly_once:
                yield from self._commit_transaction()
            else:
                yield from self._commit_offsets()
        except VAIN as error:
            poison = self._delivery.poison()
            if poison is not None:
                raise poison from error
            yield from self._start_over(error)
        self._forget()

    def lose(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Another member may be at these already: what is under way is to come to nothing."""
        for partition in partitions:
            self._first.pop(partition, None)
        yield from self._start_over("partitions were lost")

    def give_up(self) -> Calls[None]:
        """An exception is on its way to the caller, and no other is to take its place."""
        if self._due_at is not None and self._settings.exactly_once:
            end = self._producer.commit_transaction if self._committing else self._producer.abort_transaction
            try:
                yield partial(end, GIVE_UP_SECONDS)
            except (KafkaError, KafkaTimeoutError, IllegalStateError) as error:
                log.warning("the transaction is not ended, the coordinator will do it: %s", error)
        self._forget()

    def _turn(self) -> Calls[None]:
        reach, polled = yield from self._polled()
        try:
            if reach:
                self._begin(reach)
                letter = isinstance(polled, Outgoing)
                results = [polled] if letter else (yield from self._form.results(polled))
                yield from self._delivery.send(results)
                self._next.update((partition, following) for partition, _, following in reach)
        except VAIN as error:
            yield from self._start_over(error)
        if self._due_at is not None and self._now() >= self._due_at:
            yield from self.finish()

    def _polled(self) -> Calls[tuple[list[Reached], Any]]:
        """Return the span of offsets that a poll has read of each partition, and the records.

        In their place the dead letter of a record that cannot be deserialized, which is read alone.
        """
        left = IDLE_SECONDS
        if self._due_at is not None:
            left = max(0.0, self._due_at - self._now())
        try:
            polled = yield partial(self._form.poll, left)
        except WakeupError:
            return [], None
        except RecordDeserializationError as error:
            letter = buried(error.record, error, self._settings)
            following = OffsetAndMetadata(error.offset + 1, "", error.record.leader_epoch)
            self._consumer.seek(error.partition, following.offset)
            return [(TopicPartition(*error.partition), error.offset, following)], letter
        return (list(self._form.reach(polled)) if polled else []), polled

    def _begin(self, reach: list[Reached]) -> None:
        if self._due_at is None:
            if self._settings.exactly_once:
                self._producer.begin_transaction()
            now, interval = self._now(), self._settings.interval
            # After a rest at once: it is commits that are to be rare, nobody is to wait for company.
            self._due_at = min(now + interval, max(now, self._last_due_at + interval))
        for partition, first, _ in reach:
            self._first.setdefault(partition, first)

    def _commit_transaction(self) -> Calls[None]:
        group = self._consumer.group_metadata()
        yield from self._insist(partial(self._producer.send_offsets_to_transaction, dict(self._next), group))
        self._committing = True
        yield from self._insist(self._producer.commit_transaction)

    def _commit_offsets(self) -> Calls[None]:
        yield from self._insist(self._producer.flush)
        failure = next(self._delivery.failures(), None)
        if isinstance(failure, POISON):
            raise failure
        if failure is not None:
            yield from self._start_over(failure)
            return
        try:
            yield from self._insist(partial(self._consumer.commit, dict(self._next)))
        except CommitFailedError as error:
            log.warning("what was processed is processed again by another member of the group: %s", error)

    def _insist(self, call: Call) -> Calls[None]:
        """Again after each time-out, unless it is to end: a broker that is away comes back."""
        while True:
            try:
                yield call
                return
            except WakeupError:
                continue
            except KafkaTimeoutError as error:
                if self.stopping:
                    raise
                log.warning("%s; trying again", error)

    def _start_over(self, cause: object) -> Calls[None]:
        """Let what is under way come to nothing, and read it again."""
        if self._due_at is None:
            return
        log.warning("what was read is read again: %s", cause)
        if self._settings.exactly_once:
            self._committing = False
            yield from self._insist(self._producer.abort_transaction)
        mine = self._consumer.assignment()
        for partition, offset in self._first.items():
            if partition in mine:
                self._consumer.seek(partition, offset)
        self._forget()

    def _forget(self) -> None:
        self._due_at = None
        self._committing = False
        self._first.clear()
        self._next.clear()
        self._delivery.forget()
