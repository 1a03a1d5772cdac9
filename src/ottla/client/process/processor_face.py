"""The common part of the blocking and the asyncio processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ottla.client.consumer import RebalanceListener
from ottla.client.process.form import Batches, Function, ProcessForm, Records
from ottla.client.process.loop import ProcessLoop
from ottla.client.process.repeated_calls import CallRunner, RepeatedRecords
from ottla.client.process.settings import ProcessSettings, check_settings
from ottla.client.work.state.backoff import Backoff, checked_backoff


class StoppableRunner(CallRunner, Protocol):
    """Makes calls until the processor stops."""

    def stop(self) -> None:
        """End all pauses. May be called from any thread or a signal handler."""

    def close(self) -> None:
        """Release threads."""


class ProcessorBase(RebalanceListener):
    """Validates the settings, creates the loop, and stops it."""

    CLIENTS: tuple[type[Any], type[Any]]
    """The required types of the consumer and the producer."""
    RUNNER: Callable[[int], StoppableRunner]
    """Creates what makes calls concurrently, and waits between them."""

    def __init__(
        self,
        consumer: Any,
        producer: Any,
        function: Function,
        *,
        topics: Iterable[str],
        to: str | None = None,
        batches: bool = False,
        arrow: bool = False,
        include_headers: bool = False,
        exactly_once: bool = True,
        commit_interval_ms: float = 100,
        dead_letter_topic: str | None = None,
        name: str = "ottla-process",
        retries: Backoff | int = 0,
        concurrency: int = 1,
    ) -> None:
        for client, kind in zip((consumer, producer), self.CLIENTS, strict=True):
            if not isinstance(client, kind):
                raise TypeError(f"{client!r} is not a {kind.__module__}.{kind.__name__}, which this processor requires")
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        how = (batches, arrow, include_headers, exactly_once, commit_interval_ms)
        repeated = checked_backoff(retries), concurrency
        self.settings = ProcessSettings(names, to, *how, dead_letter_topic, name, *repeated)
        check_settings(self.settings, consumer.config, producer.config)
        self._consumer = consumer
        self._runner: StoppableRunner | None = self.RUNNER(concurrency) if self.settings.repeats_calls else None
        form: ProcessForm
        if self._runner is not None:
            form = RepeatedRecords(consumer, function, self.settings, self._runner)
        else:
            form = choose_form(self.settings)(consumer, function, self.settings)
        self._loop = ProcessLoop(consumer, producer, form, self.settings, time.monotonic)
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """True after `run` returned or raised."""
        return self._is_over

    def stop(self) -> None:
        """Make `run` commit the records in progress and return. May be called from any thread or a signal handler."""
        self._loop.stopping = True
        self._consumer.wakeup()
        if self._runner is not None:
            self._runner.stop()


def choose_form(settings: ProcessSettings) -> Callable[[Any, Function, ProcessSettings], ProcessForm]:
    """Return the form in which the function is called."""
    if settings.arrow:
        from ottla.client.process.arrow_form import Tables

        return Tables
    return Batches if settings.batches else Records
