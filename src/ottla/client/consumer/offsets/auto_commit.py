"""Automatic commits every `auto.commit.interval.ms`, and before partitions are revoked.

Does nothing if `enable.auto.commit` is false or there is no group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.offsets.commits import OffsetCommits, Offsets, is_retriable
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps, stop_when
from ottla.errors import KafkaTimeoutError, OttlaError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition

NO_BROKER_SECONDS = 0.5
"""The last commit is retried for this many seconds while every broker refuses connections, because a broker may be
restarting.
"""


class AutoCommit:
    """The time of the next automatic commit, and the commit in flight."""

    def __init__(
        self, config: ConsumerConfig, commits: OffsetCommits, client: NetworkClient, log: logging.LoggerAdapter[Any]
    ) -> None:
        self.enabled = config.auto_commits
        self._interval = config.auto_commit_interval_ms / 1000
        self._retry = config.retry_backoff_ms / 1000
        self._commits = commits
        self._client = client
        self._clock = client.clock
        self._log = log
        self._next = FOREVER
        self._last: Future[None] | None = None

    def schedule_next(self, now: float) -> None:
        """Schedule the next commit one interval from now."""
        self._next = now + self._interval if self.enabled else FOREVER

    def time_until_due(self, now: float) -> float:
        """Return the seconds until the next commit is due; infinity while a commit is in flight, because its response ends the wait of `poll`."""
        return FOREVER if self._is_busy() else self._next - now

    def maybe_commit(self, now: float, consumed: Callable[[], dict[TopicPartition, OffsetAndMetadata]]) -> None:
        """Commit the consumed offsets if a commit is due and the last one has ended."""
        if self._next == FOREVER:
            self.schedule_next(now)
        if now < self._next or self._is_busy():
            return
        self.schedule_next(now)
        offsets = consumed()
        if offsets:
            self._last = self.commit(offsets)

    def commit(self, offsets: Offsets) -> Future[None]:
        """Commit now, without waiting. A failure is logged, and the next commit includes the offsets."""
        future = self._commits.commit_async(offsets)
        future.add_done_callback(partial(self._log_result, offsets))
        return future

    def commit_finally(self, offsets: Offsets, timeout: float) -> Steps[None]:
        """Commit for the last time and wait for the result. A failure is only logged, because the consumer is closing.

        Gives up soon if every broker refuses connections.
        """
        no_broker_since = FOREVER

        def give_up_error() -> Exception | None:
            nonlocal no_broker_since
            if not self._client.is_every_broker_down():
                return None
            now = self._clock.monotonic()
            no_broker_since = min(no_broker_since, now)
            return (
                KafkaTimeoutError(self._client.describe_trouble())
                if now - no_broker_since >= NO_BROKER_SECONDS
                else None
            )

        try:
            yield from stop_when(self._commits.commit(offsets, timeout), give_up_error)
        except OttlaError as error:
            self._log.warning("auto-commit on close failed offsets=%s error=%s", format_offsets(offsets), error)

    def _is_busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def _log_result(self, offsets: Offsets, done: Future[None]) -> None:
        error = done.exception(0)
        if error is None:
            self._log.debug("auto-commit succeeded offsets=%s", offsets)
            return
        if is_retriable(error):
            self._next = min(self._next, self._clock.monotonic() + self._retry)
        self._log.warning("auto-commit failed offsets=%s error=%s", format_offsets(offsets), error)


def format_offsets(offsets: Offsets) -> dict[str, int]:
    """Return offsets in the form for log messages."""
    return {str(tp): offset.offset for tp, offset in offsets.items()}
