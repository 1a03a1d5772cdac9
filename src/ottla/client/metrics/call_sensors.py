"""What a client measures of its user's calls that may wait, from whichever thread they come: all of them are rare."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ottla.client.metrics.client_metrics import Sheet
from ottla.client.metrics.reading import Reading
from ottla.client.metrics.registry import Registry
from ottla.client.runtime.steps import Steps, T

NS = 1_000_000_000


class CallSensors:
    """A sensor for each kind of call; what is recorded is seconds."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float], kinds: Iterable[str]) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._sensors = {kind: registry.sensor() for kind in kinds}

    def record(self, kind: str, seconds: float) -> None:
        with self._lock:
            self._sensors[kind].record(seconds)

    def timed(self, kind: str, steps: Steps[T]) -> Steps[T]:
        """The same steps, with the time that they take, whatever they come to."""
        began = self._monotonic()
        try:
            return (yield from steps)
        finally:
            self.record(kind, self._monotonic() - began)

    def read(self, kind: str, now: float) -> Reading:
        return self._registry.read(self._sensors[kind], now)

    def write(self, sheet: Sheet, now: float, kinds: Iterable[str]) -> None:
        """Of each of these kinds how long it took in all, in Java's unit."""
        for kind in kinds:
            sheet.put(f"{kind}-time-ns-total", self.read(kind, now).total * NS)
