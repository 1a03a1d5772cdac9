"""The common part of the worker with threads and the worker for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

from ottla.client.consumer import RebalanceListener
from ottla.client.work.consumer_group import ConsumerGroupSource
from ottla.client.work.loop import WorkLoop
from ottla.client.work.settings import Spans, consumer_settings, make_settings, producer_settings
from ottla.client.work.share_group import ShareGroupSource
from ottla.client.work.state.backoff import Backoff
from ottla.client.work.state.schedule import Job, Order, Schedule
from ottla.model import TopicPartition

Function = Callable[[Any], Any]


class WorkerBase(RebalanceListener):
    """Validates the settings, creates the clients and the loop, and stops it."""

    CONSUMER: type[Any]
    SHARE_CONSUMER: type[Any]
    PRODUCER: type[Any]
    start_ready: Callable[[], None]
    cancel: Callable[[Iterable[Job]], None]
    wait_until_idle: Callable[[list[TopicPartition] | None, float], Any]

    def __init__(
        self,
        topics: str | Iterable[str],
        function: Function,
        config: Mapping[str, Any] | None = None,
        /,
        *,
        group: str,
        share: bool = False,
        concurrency: int | None = None,
        processes: int | None = None,
        order: Order | None = None,
        retries: Backoff | int = 5,
        dead_letters: str | None = None,
        time_limit: float | None = None,
        commit_interval_ms: float = 100,
        drain_seconds: float = 30.0,
        buffer_records: int = 1000,
        buffer_bytes: int = 2**26,
        spans: Spans | None = None,
        **settings: Any,
    ) -> None:
        self.settings = make_settings(
            topics,
            group,
            share,
            concurrency,
            processes,
            order,
            retries,
            dead_letters,
            time_limit,
            commit_interval_ms,
            drain_seconds,
            buffer_records,
            buffer_bytes,
            spans,
        )
        self._function = function
        self._guard = self._make_guard()
        self._schedule = Schedule(
            self.settings.order,
            self.settings.concurrency,
            self.settings.backoff,
            buffer_records=buffer_records,
            buffer_bytes=buffer_bytes,
        )
        make_consumer = self.SHARE_CONSUMER if share else self.CONSUMER
        self._consumer = make_consumer(consumer_settings(self.settings, config, settings))
        self._producer = None if dead_letters is None else self.PRODUCER(producer_settings(config, settings))
        make_source = ShareGroupSource if share else ConsumerGroupSource
        source = make_source(self._consumer, self._schedule, self.settings, self._guard, time.monotonic)
        self._loop = WorkLoop(source, self._schedule, self.settings, self, self._guard, time.monotonic, Random())
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """True after `run` returned or raised."""
        return self._is_over

    def stop(self) -> None:
        """Make `run` wait for the running calls, commit, and return. May be called from any thread or a signal handler.

        After a second call, `run` does not wait for the running calls; their records are processed again later.
        """
        self._loop.stop()
        self._consumer.wakeup()

    def _make_guard(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def _span(self, job: Job) -> AbstractContextManager[Any]:
        """Return the span around one call."""
        return nullcontext() if self.settings.spans is None else self.settings.spans.process(job.record)
