"""The records of a consumer group for a worker: it polls, pauses and commits. Belongs to the thread or task that polls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from ottla.client.consumer import RebalanceListener
from ottla.client.process.calls import Call, Calls
from ottla.client.work.settings import WorkSettings
from ottla.client.work.state.finished_offsets import decode_finished
from ottla.client.work.state.schedule import Job, Schedule
from ottla.errors import ErrorCode, KafkaError, OttlaError, RecordDeserializationError, WakeupError
from ottla.model import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
"""The longest poll while nothing is unfinished or uncommitted."""
POSITION_SECONDS = 1.0
MIN_METADATA_BYTES = 64
"""Below this size the metadata of commits is left out, if the broker rejects it."""
Offsets = dict[TopicPartition, OffsetAndMetadata]


class ConsumerGroupSource:
    """A consumer, and what it commits.

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
        self._commit_at = 0.0
        """The time of the next commit."""
        self._positions_at = 0.0
        """The time at which positions are compared although records arrive."""
        self._is_committing = False
        self._is_dirty = False
        """True if the last turn has found something to commit."""

    def subscribe(self, listener: RebalanceListener) -> None:
        self._consumer.subscribe(self._settings.topics, listener)

    def poll(self, longest: float) -> Calls[None]:
        """Add the records of one poll to the schedule."""
        span = longest
        if self._is_dirty or self._is_committing or self._schedule.unfinished_count:
            span = min(span, max(self._commit_at - self._now(), 0.0))
        try:
            records = yield partial(self._consumer.poll, span)
        except WakeupError:
            return
        except RecordDeserializationError as error:
            tp, next_offset = TopicPartition(*error.partition), error.offset + 1
            self._consumer.seek(tp, next_offset)
            with self._guard:
                self._schedule.add(tp, [error.record], next_offset, error=error)
            return
        if records:
            with self._guard:
                for part in records.slices:
                    self._schedule.add(part.source.tp, part, part.next_offset)
                for tp, commit in records.next_offsets().items():  # an interceptor may have left records out
                    self._schedule.add(tp, (), commit.offset)
        if not records or self._now() >= self._positions_at:
            yield from self._advance()

    def _advance(self) -> Calls[None]:
        """Pass the consumer's positions to the schedule, in which offsets without records would hold back commits."""
        self._positions_at = self._now() + POSITION_SECONDS
        for tp in self._consumer.assignment():
            try:
                position = yield partial(self._consumer.position, tp, 0)
            except OttlaError:  # not known yet, or revoked
                continue
            with self._guard:
                self._schedule.advance(tp, position)

    def settle(self) -> None:
        """Pause and resume partitions, and send a commit if one is due. Does not wait."""
        with self._guard:
            to_pause, to_resume = self._schedule.update_pauses()
        mine = self._consumer.assignment()
        self._consumer.pause(*(tp for tp in to_pause if tp in mine))
        self._consumer.resume(*(tp for tp in to_resume if tp in mine))
        now = self._now()
        if self._is_committing or now < self._commit_at:
            return
        self._commit_at = now + self._settings.commit_interval
        offsets = self._take_commits()
        self._is_dirty = bool(offsets)
        if offsets:
            self._is_committing = True
            self._consumer.commit_async(offsets, self._handle_commit)

    def pause_all(self) -> None:
        """Return no more records."""
        self._consumer.pause(*self._consumer.assignment())

    def commit(self, timeout: float | None = None) -> Calls[None]:
        """Commit what is finished, and wait for the result. Errors are logged: the records are repeated."""
        offsets = self._take_commits()
        if not offsets:
            return
        try:
            yield from retry_wakeups(partial(self._consumer.commit, offsets, timeout))
        except OttlaError as error:
            self._handle_failed_commit(offsets, error)

    def assign(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Add partitions to the schedule, with what their earlier owner has finished."""
        committed: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if partitions:
            try:
                committed = yield from retry_wakeups(partial(self._consumer.committed, partitions))
            except OttlaError as error:
                log.warning("committed offsets not read; finished records may be repeated error=%s", error)
        for tp in partitions:
            found = committed.get(tp)
            finished = [] if found is None else read_finished(tp, found)
            with self._guard:
                self._schedule.assign(tp, found, finished)

    def accept(self, job: Job) -> None:
        """Do nothing: the schedule knows what may be committed."""

    def reject(self, job: Job) -> bool:
        """Return False: a consumer group has no other place for a record without dead letters."""
        return False

    def is_starving(self) -> bool:
        """Return True if the next turn would resume a paused partition. Called with `guard`."""
        return self._schedule.has_resumable

    def _take_commits(self) -> Offsets:
        """Return what is to be committed, and consider it committed."""
        with self._guard:
            now = self._now()
            offsets = self._schedule.commits(now)
            self._schedule.mark_committed(offsets, now)
        return offsets

    def _handle_commit(self, offsets: Offsets, error: Exception | None) -> None:
        self._is_committing = False
        if error is not None:
            self._handle_failed_commit(offsets, error)

    def _handle_failed_commit(self, offsets: Offsets, error: Exception) -> None:
        self._is_dirty = True
        with self._guard:
            self._schedule.mark_uncommitted(offsets)
            if isinstance(error, KafkaError) and error.code == ErrorCode.OFFSET_METADATA_TOO_LARGE:
                smaller = self._schedule.max_metadata_bytes // 2
                self._schedule.max_metadata_bytes = smaller if smaller >= MIN_METADATA_BYTES else 0
        log.warning("offset commit failed; it is retried while the partitions are assigned error=%s", error)


def read_finished(tp: TopicPartition, committed: OffsetAndMetadata) -> list[tuple[int, int]]:
    """Return the runs of finished offsets in the metadata of a commit; none if it is malformed."""
    try:
        return decode_finished(committed.offset, committed.metadata)
    except ValueError as error:
        log.warning("commit metadata ignored; finished records are repeated partition=%s error=%s", tp, error)
        return []


def retry_wakeups(call: Call) -> Calls[Any]:
    """Make a call, again after each wakeup, which was meant for a poll."""
    while True:
        try:
            return (yield call)
        except WakeupError:
            continue
