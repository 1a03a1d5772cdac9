"""The processing loop. Results and offsets are committed together, or not at all.

Each turn polls, calls the function, queues the results, and commits if a commit is due. With `exactly_once` a
transaction starts with the first record after a commit; the offsets are added to it before it is committed (KIP-98,
KIP-447). After an error that a retry can repair, the transaction is aborted and the consumer seeks back to the first
uncommitted offset.

Written as generators of calls, for blocking and asyncio clients (`calls`). A full producer buffer pauses the loop, and
nothing is polled meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.process.calls import Call, Calls
from ottla.client.process.delivery import PERMANENT_ERRORS, ResultDelivery
from ottla.client.process.form import PartitionSpan, ProcessForm, make_dead_letter
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.repeated_calls import UnfinishedError
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
"""The longest poll while nothing is uncommitted."""
GIVE_UP_SECONDS = 1.0
"""Seconds to wait for the abort before an exception is raised. After that the transaction times out at the coordinator.
"""
RETRIABLE_ERRORS = (TransactionAbortableError, CommitFailedError, BufferExhaustedError)
"""Errors after which the uncommitted records are read and processed again."""


class ProcessLoop:
    """Poll, process, send and commit until `stopping`."""

    def __init__(
        self, consumer: Any, producer: Any, form: ProcessForm, settings: ProcessSettings, now: Callable[[], float]
    ) -> None:
        self.stopping = False
        self._consumer = consumer
        self._producer = producer
        self._form = form
        self._settings = settings
        self._now = now
        self._delivery = ResultDelivery(producer, settings.to)
        self._due_at: float | None = None
        """The time of the next commit; None if nothing is uncommitted."""
        self._last_due_at = FOREVER
        """The start of the last commit."""
        self._committing = False
        self._first: dict[TopicPartition, int] = {}
        """The offset of each partition from which records are read again after a failure."""
        self._next: dict[TopicPartition, OffsetAndMetadata] = {}
        """The next offset to read of each partition."""

    def run(self) -> Calls[None]:
        """Run until `stopping`, then commit."""
        if self._settings.exactly_once:
            yield self._producer.init_transactions
        while not self.stopping:
            yield from self._run_once()
        yield from self.commit()

    def commit(self) -> Calls[None]:
        """Commit the records processed so far."""
        if self._due_at is None:
            return
        self._last_due_at = self._now()
        try:
            if self._settings.exactly_once:
                yield from self._commit_transaction()
            else:
                yield from self._commit_offsets()
        except RETRIABLE_ERRORS as error:
            permanent = self._delivery.find_permanent_error()
            if permanent is not None:
                raise permanent from error
            yield from self._abort_and_rewind(error)
        self._clear()

    def abort_lost_partitions(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Abort the records in progress: another member may already process these partitions."""
        for partition in partitions:
            self._first.pop(partition, None)
        yield from self._abort_and_rewind("partitions were lost")

    def abort_after_error(self) -> Calls[None]:
        """Abort before an exception is raised to the caller. Errors of the abort are only logged."""
        if self._due_at is not None and self._settings.exactly_once:
            end = self._producer.commit_transaction if self._committing else self._producer.abort_transaction
            try:
                yield partial(end, GIVE_UP_SECONDS)
            except (KafkaError, KafkaTimeoutError, IllegalStateError) as error:
                log.warning("transaction not ended; it will time out at the coordinator error=%s", error)
        self._clear()

    def _run_once(self) -> Calls[None]:
        spans, polled = yield from self._poll()
        try:
            if spans:
                self._start_commit_interval(spans)
                is_dead_letter = isinstance(polled, Outgoing)
                results = [polled] if is_dead_letter else (yield from self._form.results(polled))
                yield from self._delivery.send(results)
                self._next.update((partition, next_offset) for partition, _, next_offset in spans)
        except RETRIABLE_ERRORS as error:
            yield from self._abort_and_rewind(error)
        except UnfinishedError:  # the processor stops, and the records before this poll are committed
            if not self._next:
                yield from self._abort_and_rewind("the processor stops while a record waits for a retry")
            return
        if self._due_at is not None and self._now() >= self._due_at:
            yield from self.commit()

    def _poll(self) -> Calls[tuple[list[PartitionSpan], Any]]:
        """Return the span of offsets that a poll read of each partition, and the records.

        A record that cannot be deserialized is returned alone, as its dead letter.
        """
        left = IDLE_SECONDS
        if self._due_at is not None:
            left = max(0.0, self._due_at - self._now())
        try:
            polled = yield partial(self._form.poll, left)
        except WakeupError:
            return [], None
        except RecordDeserializationError as error:
            letter = make_dead_letter(error.record, error, self._settings)
            next_offset = OffsetAndMetadata(error.offset + 1, "", error.record.leader_epoch)
            self._consumer.seek(error.partition, next_offset.offset)
            return [(TopicPartition(*error.partition), error.offset, next_offset)], letter
        return (list(self._form.spans(polled)) if polled else []), polled

    def _start_commit_interval(self, spans: list[PartitionSpan]) -> None:
        if self._due_at is None:
            if self._settings.exactly_once:
                self._producer.begin_transaction()
            now, interval = self._now(), self._settings.interval
            # Commits are to be rare, but a record after a pause should not wait: then the commit is due at once.
            self._due_at = min(now + interval, max(now, self._last_due_at + interval))
        for partition, first, _ in spans:
            self._first.setdefault(partition, first)

    def _commit_transaction(self) -> Calls[None]:
        group = self._consumer.group_metadata()
        yield from self._retry_timeouts(partial(self._producer.send_offsets_to_transaction, dict(self._next), group))
        self._committing = True
        yield from self._retry_timeouts(self._producer.commit_transaction)

    def _commit_offsets(self) -> Calls[None]:
        yield from self._retry_timeouts(self._producer.flush)
        failure = next(self._delivery.failures(), None)
        if isinstance(failure, PERMANENT_ERRORS):
            raise failure
        if failure is not None:
            yield from self._abort_and_rewind(failure)
            return
        try:
            yield from self._retry_timeouts(partial(self._consumer.commit, dict(self._next)))
        except CommitFailedError as error:
            log.warning("offset commit failed; another member processes these records again error=%s", error)

    def _retry_timeouts(self, call: Call) -> Calls[None]:
        """Repeat the call after each timeout, until the loop is stopping: an unavailable broker may return."""
        while True:
            try:
                yield call
                return
            except WakeupError:
                continue
            except KafkaTimeoutError as error:
                if self.stopping:
                    raise
                log.warning("call timed out and is retried error=%s", error)

    def _abort_and_rewind(self, cause: object) -> Calls[None]:
        """Abort the records in progress and seek back to read them again."""
        if self._due_at is None:
            return
        log.warning("uncommitted records are read again cause=%s", cause)
        if self._settings.exactly_once:
            self._committing = False
            yield from self._retry_timeouts(self._producer.abort_transaction)
        mine = self._consumer.assignment()
        for partition, offset in self._first.items():
            if partition in mine:
                self._consumer.seek(partition, offset)
        self._clear()

    def _clear(self) -> None:
        self._due_at = None
        self._committing = False
        self._first.clear()
        self._next.clear()
        self._delivery.clear()
