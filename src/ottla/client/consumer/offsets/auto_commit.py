"""Commits that nobody asks for: every `auto.commit.interval.ms`, and before partitions go to others.

Does nothing where `enable.auto.commit` is false or there is no group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.offsets.commits import OffsetCommits, Offsets, may_succeed_later
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps, unless
from ottla.errors import KafkaTimeoutError, OttlaError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition

LONELY_SECONDS = 0.5
"""How long the last commit is tried while nobody takes a connection: a broker that starts anew may be there by then."""


class AutoCommit:
    """When the next is due, and whether the last is still under way."""

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

    def later(self, now: float) -> None:
        """The next is due an interval from now."""
        self._next = now + self._interval if self.enabled else FOREVER

    def wait(self, now: float) -> float:
        """Seconds until the next is due; infinity while the last is under way, whose outcome will tell."""
        return FOREVER if self._is_busy() else self._next - now

    def maybe_commit(self, now: float, consumed: Callable[[], dict[TopicPartition, OffsetAndMetadata]]) -> None:
        """Commit what is consumed if that is due and the last one has ended."""
        if self._next == FOREVER:
            self.later(now)
        if now < self._next or self._is_busy():
            return
        self.later(now)
        offsets = consumed()
        if offsets:
            self._last = self.commit(offsets)

    def commit(self, offsets: Offsets) -> Future[None]:
        """Commit now, without waiting; a failure is said, and made good by the next."""
        future = self._commits.commit_async(offsets)
        future.add_done_callback(partial(self._tell, offsets))
        return future

    def commit_finally(self, offsets: Offsets, timeout: float) -> Steps[None]:
        """The last commit, waited for; what goes wrong is said, for the consumer closes all the same.

        Where every broker refuses its connections it is soon given up.
        """
        nobody_since = FOREVER

        def in_vain() -> Exception | None:
            nonlocal nobody_since
            if not self._client.is_every_broker_down():
                return None
            now = self._clock.monotonic()
            nobody_since = min(nobody_since, now)
            return KafkaTimeoutError(self._client.trouble()) if now - nobody_since >= LONELY_SECONDS else None

        try:
            yield from unless(self._commits.commit(offsets, timeout), in_vain)
        except OttlaError as error:
            self._log.warning("auto-commit of %s failed: %s", shown(offsets), error)

    def _is_busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def _tell(self, offsets: Offsets, done: Future[None]) -> None:
        error = done.exception(0)
        if error is None:
            self._log.debug("auto-committed on the way: %s", offsets)
            return
        if may_succeed_later(error):
            self._next = min(self._next, self._clock.monotonic() + self._retry)
        self._log.warning("auto-commit on the way of %s failed: %s", shown(offsets), error)


def shown(offsets: Offsets) -> dict[str, int]:
    """Offsets as the log shows them."""
    return {str(tp): offset.offset for tp, offset in offsets.items()}
