"""Time spent in blocking calls of the user, which may come from any thread.

All of them are rare, so a lock is cheap enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.reading import SensorReading
from ottla.client.metrics.registry import Registry
from ottla.client.runtime.steps import Steps, T

NS = 1_000_000_000


class CallSensors:
    """One sensor of seconds for each kind of call."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float], kinds: Iterable[str]) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._sensors = {kind: registry.sensor() for kind in kinds}

    def record(self, kind: str, seconds: float) -> None:
        with self._lock:
            self._sensors[kind].record(seconds)

    def time_steps(self, kind: str, steps: Steps[T]) -> Steps[T]:
        """Run the steps and record their duration, also if they raise."""
        start = self._monotonic()
        try:
            return (yield from steps)
        finally:
            self.record(kind, self._monotonic() - start)

    def read(self, kind: str, now: float) -> SensorReading:
        return self._registry.read(self._sensors[kind], now)

    def write(self, builder: MetricsBuilder, now: float, kinds: Iterable[str]) -> None:
        """Write the total time of each kind in nanoseconds, the unit of Java's metrics."""
        for kind in kinds:
            builder.put(f"{kind}-time-ns-total", self.read(kind, now).total * NS)
