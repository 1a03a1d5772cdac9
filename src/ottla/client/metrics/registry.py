"""The sensors of one thread, and the windows by which all of them are read.

The windows are those of `metrics.num.samples` and `metrics.sample.window.ms`. One that nobody ticked for long has recorded nothing
meanwhile: who records ticks before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ottla.client.metrics.reading import Reading
from ottla.client.metrics.sensor import Sensor

K = TypeVar("K", bound=Hashable)
SHORTEST_WINDOW = 0.001


class Registry:
    def __init__(self, samples: int, window_ms: float, now: float) -> None:
        self._samples = samples
        self._window = max(window_ms / 1000, SHORTEST_WINDOW)
        self._marked = now
        self._ends = now + self._window
        self._sensors: list[Sensor] = []

    def sensor(self) -> Sensor:
        """A new one."""
        return self.add(Sensor())

    def add(self, sensor: Sensor) -> Sensor:
        """One that was made elsewhere, and has nothing recorded yet."""
        sensor.mark(self._marked, self._samples)
        self._sensors.append(sensor)
        return sensor

    def tick(self, now: float) -> None:
        """Time has passed; often called, and most often there is nothing to do."""
        if now >= self._ends:
            for sensor in self._sensors:
                sensor.mark(now, self._samples)
            self._marked, self._ends = now, now + self._window

    def read(self, sensor: Sensor, now: float) -> Reading:
        """What was recorded in all, and within the last windows."""
        return sensor.read(now - self._samples * self._window, now)


class Family(Generic[K]):
    """A sensor for each topic, node or the like, made when it is first needed."""

    def __init__(self, make: Callable[[], Sensor]) -> None:
        self._make = make
        self._sensors: dict[K, Sensor] = {}

    def of(self, key: K) -> Sensor:
        sensor = self._sensors.get(key)
        if sensor is None:
            sensor = self._sensors[key] = self._make()
        return sensor

    def all(self) -> dict[K, Sensor]:
        """Those there are, as a copy that no other thread changes."""
        return self._sensors.copy()
