"""The loop of a worker: poll, start calls, settle what is finished; at the end wait for the running calls and commit.

Written as generators of calls (`ottla.client.process.calls`), for threads and for asyncio. The crew runs the function: it
takes jobs from the schedule, and reports each result here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from random import Random
from typing import Any, Protocol

from ottla.client.consumer import RebalanceListener
from ottla.client.process.calls import Calls
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.retry_warnings import RetryWarnings
from ottla.client.work.dead_letters import failure_headers
from ottla.client.work.settings import WorkSettings
from ottla.client.work.state.schedule import Job, Schedule
from ottla.model import TopicPartition

log = logging.getLogger(__name__)

LONGEST_POLL = 1.0
"""Seconds."""
DRAIN_POLL = 0.1
"""Seconds of one poll while the worker waits for running calls."""
GIVE_UP_SECONDS = 1.0
"""Seconds for the commit after an error."""


class Crew(Protocol):
    """Runs the function in threads or tasks."""

    def start_ready(self) -> None:
        """Start the jobs that may run."""

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Cancel calls, if that is possible."""

    def wait_until_idle(self, partitions: list[TopicPartition] | None, deadline: float) -> Any:
        """Wait until no call is running, of these partitions or at all. May return an awaitable."""


class Source(Protocol):
    """Records of a consumer group or of a share group."""

    def subscribe(self, listener: RebalanceListener) -> None: ...
    def poll(self, longest: float) -> Calls[None]: ...
    def settle(self) -> None: ...
    def pause_all(self) -> None: ...
    def commit(self, timeout: float | None = None) -> Calls[None]: ...
    def assign(self, partitions: list[TopicPartition]) -> Calls[None]: ...
    def accept(self, job: Job) -> None: ...
    def reject(self, job: Job) -> bool: ...
    def is_starving(self) -> bool: ...


class WorkLoop:
    """Moves records from the source through the crew until it is stopped."""

    def __init__(
        self,
        source: Source,
        schedule: Schedule,
        settings: WorkSettings,
        crew: Crew,
        guard: AbstractContextManager[Any],
        now: Callable[[], float],
        random: Random,
    ) -> None:
        self._source = source
        self._schedule = schedule
        self._settings = settings
        self._crew = crew
        self._guard = guard
        self._now = now
        self._random = random
        self._retry_warnings = RetryWarnings()
        self._stops = 0
        self.failure: BaseException | None = None
        """The error that ends the worker."""

    @property
    def is_stopping(self) -> bool:
        """True if no more jobs may start."""
        return self._stops > 0

    def stop(self) -> None:
        """End `run` after the running calls. A second call of this method ends it without waiting for them."""
        self._stops += 1

    def run(self, listener: RebalanceListener) -> Calls[None]:
        """Run until `stop`. Raises the error of a record that could neither be processed nor put aside."""
        self._source.subscribe(listener)
        while not self.is_stopping:
            yield from self._source.poll(LONGEST_POLL)
            self._source.settle()
            self._crew.start_ready()
        yield from self._drain()
        yield from self._source.commit()
        if self.failure is not None:
            raise self.failure

    def end_after_error(self) -> Calls[None]:
        """Cancel the calls and commit what is finished, before an exception is raised to the caller."""
        self._stops += 2
        with self._guard:
            running = self._schedule.running()
        self._crew.cancel(running)
        yield partial(self._crew.wait_until_idle, None, self._now() + GIVE_UP_SECONDS)
        yield from self._source.commit(GIVE_UP_SECONDS)

    def assign(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Handle assigned partitions."""
        yield from self._source.assign(partitions)

    def revoke(self, partitions: list[TopicPartition]) -> Calls[None]:
        """Wait for the running calls of these partitions, for `drain_seconds` at most, and commit what is finished.

        Calls that have not ended are dropped: the next owner of the partition repeats their records.
        """
        with self._guard:
            self._schedule.hold(partitions)
        seconds = 0.0 if self._stops > 1 else self._settings.drain_seconds
        yield partial(self._crew.wait_until_idle, partitions, self._now() + seconds)
        yield from self._source.commit()
        self.lose(partitions)

    def lose(self, partitions: list[TopicPartition]) -> None:
        """Drop the jobs of partitions without a commit."""
        with self._guard:
            dropped = self._schedule.remove(partitions)
        if dropped:
            log.warning("running calls dropped; their records are repeated records=%d", len(dropped))
        self._crew.cancel(dropped)

    def should_wake(self) -> bool:
        """Return True if the waiting poll should end, after a call has ended."""
        with self._guard:
            return self.is_stopping or self._source.is_starving()

    def finish(self, job: Job) -> None:
        """Handle a function that has returned, or a dead letter that is stored."""
        with self._guard:
            if not job.is_dropped:
                self._source.accept(job)
            self._schedule.finish(job)

    def release(self, job: Job) -> None:
        """Handle a cancelled call. The record is not finished."""
        with self._guard:
            self._schedule.release(job)

    def fail(self, job: Job, error: BaseException) -> Outgoing | None:
        """Handle an exception of the function. Return the dead letter that is to be sent before `finish`, if there is one.

        Without a topic for dead letters, a record that is given up ends the worker, or is rejected in a share group.
        """
        with self._guard:
            delay = self._schedule.fail(job, error, self._now(), self._random.random())
        record = job.record
        facts = (job.tp, record.offset, job.attempts, describe_error(error))
        if delay is not None:
            log.log(
                self._retry_warnings.level(self._now()),
                "call failed and is retried partition=%s offset=%d attempts=%d retry_seconds=%.3f error=%s",
                *facts[:3],
                delay,
                facts[3],
            )
            return None
        if job.is_dropped:
            self.finish(job)
            return None
        log.warning("record given up partition=%s offset=%d attempts=%d error=%s", *facts)
        settings = self._settings
        if settings.dead_letters is not None:
            headers = failure_headers(record, error, job.attempts, settings.group)
            return Outgoing(record.raw_value, record.raw_key, settings.dead_letters, headers=headers)
        with self._guard:
            is_rejected = self._source.reject(job)
            if is_rejected:
                self._schedule.finish(job)
        if not is_rejected:
            self.end_with(job, error)
        return None

    def end_with(self, job: Job, error: BaseException) -> None:
        """Stop the worker with this error. The record is not finished."""
        if job.is_running:
            self.release(job)
        if self.failure is None:
            self.failure = error
        self._stops = max(self._stops, 1)

    def _drain(self) -> Calls[None]:
        """Wait for the running calls, and poll meanwhile, so that a rebalance need not wait for this member."""
        deadline = self._now() + self._settings.drain_seconds
        self._source.pause_all()
        while self._stops < 2 and self._now() < deadline and self._is_running():
            yield from self._source.poll(DRAIN_POLL)
            self._source.settle()
        with self._guard:
            running = self._schedule.running()
        if running:
            log.warning("running calls cancelled; their records are repeated records=%d", len(running))
            self._crew.cancel(running)
            yield partial(self._crew.wait_until_idle, None, self._now() + GIVE_UP_SECONDS)

    def _is_running(self) -> bool:
        with self._guard:
            return bool(self._schedule.running())


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an error, for a log line."""
    return f"{type(error).__name__}: {error}"
