"""The records of a share group for a worker: it acquires, acknowledges and renews. Belongs to the thread or task that polls.

A record is locked for this worker from its delivery on. The lock is renewed while the record runs, waits for its turn or waits
for a retry (KIP-1222), so a record is delivered to another worker only if this one has ended or lost its connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from ottla.client.consumer import RebalanceListener
from ottla.client.process.calls import Calls
from ottla.client.share.state.acknowledgements import AcknowledgeType
from ottla.client.work.consumer_group import retry_wakeups
from ottla.client.work.settings import WorkSettings
from ottla.client.work.state.locks import Locks
from ottla.client.work.state.schedule import Job, Schedule
from ottla.errors import (
    CorruptRecordError,
    IllegalStateError,
    OttlaError,
    RecordDeserializationError,
    WakeupError,
)
from ottla.model import TopicPartition

log = logging.getLogger(__name__)

BUFFERED_CALLS = 2
"""Records are acquired while fewer than this number times `concurrency` are unfinished."""


class ShareGroupSource:
    """A share consumer, and what it acknowledges.

    `guard` protects the schedule, which the threads of a worker share.
    """

    def __init__(
        self,
        consumer: Any,
        schedule: Schedule,
        settings: WorkSettings,
        guard: AbstractContextManager[Any],
        now: Callable[[], float],
    ) -> None:
        self._consumer = consumer
        self._schedule = schedule
        self._settings = settings
        self._guard = guard
        self._now = now
        self._locks = Locks()
        self._results: list[tuple[Job, AcknowledgeType]] = []
        """Results that were not passed to the consumer yet."""
        self._is_full = False
        self._is_draining = False
        consumer.set_acknowledgement_commit_callback(log_failed_acknowledgements)

    def subscribe(self, listener: RebalanceListener) -> None:
        self._consumer.subscribe(self._settings.topics)

    def poll(self, longest: float) -> Calls[None]:
        """Add acquired records to the schedule."""
        unfinished = self._schedule.unfinished_count
        self._is_full = self._is_draining or unfinished >= BUFFERED_CALLS * self._settings.concurrency
        span = min(longest, self._settings.commit_interval) if unfinished or self._results else longest
        try:
            records = yield partial(self._consumer.acquire, span, fetch=not self._is_full)
        except WakeupError:
            return
        except RecordDeserializationError as error:
            # The consumer would release it: the lock is kept until the record is given up.
            self._consumer.acknowledge(*error.partition, error.offset, AcknowledgeType.RENEW)
            self._add(TopicPartition(*error.partition), [error.record], error)
            return
        except CorruptRecordError as error:
            log.error("damaged records rejected error=%s", error)
            return
        for part in records.slices:
            self._add(part.source.tp, part)

    def settle(self) -> None:
        """Acknowledge what is finished, and renew locks. The next poll sends both."""
        with self._guard:
            results, self._results = self._results, []
        for job, kind in results:
            self._locks.end(job)
            self._acknowledge(job, kind)
        lock_timeout_ms = self._consumer.acquisition_lock_timeout_ms()
        if lock_timeout_ms is not None:
            for job in self._locks.renew_due(self._now(), lock_timeout_ms / 1000):
                if not self._acknowledge(job, AcknowledgeType.RENEW):
                    self._locks.end(job)

    def pause_all(self) -> None:
        """Acquire no more records."""
        self._is_draining = True

    def commit(self, timeout: float | None = None) -> Calls[None]:
        """Send the acknowledgements, and wait for the results. Errors are logged: the records are delivered again."""
        self.settle()
        try:
            yield from retry_wakeups(partial(self._consumer.commit, timeout))
        except OttlaError as error:
            log.warning("acknowledgements not sent; the records are delivered again error=%s", error)

    def assign(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Do nothing: partitions do not belong to a member of a share group."""
        yield from ()

    def accept(self, job: Job) -> None:
        """Acknowledge a finished job with the next poll. Called with `guard`."""
        self._results.append((job, AcknowledgeType.ACCEPT))

    def reject(self, job: Job) -> bool:
        """Acknowledge a job that is given up: the broker delivers it no more. Called with `guard`."""
        self._results.append((job, AcknowledgeType.REJECT))
        return True

    def is_starving(self) -> bool:
        """Return True if a poll is waiting without a request for records although they are needed. Called with `guard`."""
        return self._is_full and not self._is_draining and self._schedule.unfinished_count <= self._settings.concurrency

    def _add(self, tp: TopicPartition, records: Any, error: BaseException | None = None) -> None:
        with self._guard:
            jobs = self._schedule.add_acquired(tp, records, error=error)
        now = self._now()
        for job in jobs:
            self._locks.start(job, now)

    def _acknowledge(self, job: Job, kind: AcknowledgeType) -> bool:
        """Pass an acknowledgement to the consumer. Return False if the record is not held any more."""
        try:
            self._consumer.acknowledge(*job.tp, job.record.offset, kind)
            return True
        except IllegalStateError:
            log.warning("lock lost; the record is delivered again partition=%s offset=%d", job.tp, job.record.offset)
            return False


def log_failed_acknowledgements(offsets: dict[TopicPartition, set[int]], error: Exception | None) -> None:
    """Log acknowledgements without effect."""
    if error is not None:
        for tp, found in offsets.items():
            log.warning(
                "acknowledgement failed; the records are delivered again partition=%s records=%d error=%s",
                tp,
                len(found),
                error,
            )
