"""What both faces of a processor have, the one whose clients block and the one whose clients are awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ottla.client.consumer import RebalanceListener
from ottla.client.process.form import Batches, Form, Function, Records
from ottla.client.process.loop import Loop
from ottla.client.process.settings import ProcessSettings, check_settings


class ProcessorFace(RebalanceListener):
    """Settings, and the wish to end."""

    CLIENTS: tuple[type[Any], type[Any]]
    """Of which kind consumer and producer are."""

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
    ) -> None:
        for client, kind in zip((consumer, producer), self.CLIENTS, strict=True):
            if not isinstance(client, kind):
                raise TypeError(f"{client!r} is no {kind.__module__}.{kind.__name__}, which this processor needs")
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        how = (batches, arrow, include_headers, exactly_once, commit_interval_ms)
        self.settings = ProcessSettings(names, to, *how, dead_letter_topic, name)
        check_settings(self.settings, consumer.config, producer.config)
        self._consumer = consumer
        form = form_of(self.settings)(consumer, function, self.settings)
        self._loop = Loop(consumer, producer, form, self.settings, time.monotonic)
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether `run` has returned or raised."""
        return self._over

    def stop(self) -> None:
        """Have `run` commit what is under way and return; from any thread, or a signal handler."""
        self._loop.stopping = True
        self._consumer.wakeup()


def form_of(settings: ProcessSettings) -> Callable[[Any, Function, ProcessSettings], Form]:
    """In which form the function is called."""
    if settings.arrow:
        from ottla.client.process.arrow_form import Tables

        return Tables
    return Batches if settings.batches else Records
