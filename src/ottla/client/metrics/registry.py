"""The sensors of one thread, and the time windows by which they are read.

The windows are defined by `metrics.num.samples` and `metrics.sample.window.ms`. A thread ticks before it records, so a
registry without ticks has recorded nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ottla.client.metrics.reading import SensorReading
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
        """Create a sensor."""
        return self.add(Sensor())

    def add(self, sensor: Sensor) -> Sensor:
        """Add an existing sensor without recorded values."""
        sensor.mark(self._marked, self._samples)
        self._sensors.append(sensor)
        return sensor

    def tick(self, now: float) -> None:
        """Start a new window if the current one has ended. Called often; usually there is nothing to do."""
        if now >= self._ends:
            for sensor in self._sensors:
                sensor.mark(now, self._samples)
            self._marked, self._ends = now, now + self._window

    def read(self, sensor: Sensor, now: float) -> SensorReading:
        """Read the totals and the values within the last windows."""
        return sensor.read(now - self._samples * self._window, now)


class Family(Generic[K]):
    """A sensor for each key, such as a topic or node, created on first use."""

    def __init__(self, make: Callable[[], Sensor]) -> None:
        self._make = make
        self._sensors: dict[K, Sensor] = {}

    def sensor_for(self, key: K) -> Sensor:
        sensor = self._sensors.get(key)
        if sensor is None:
            sensor = self._sensors[key] = self._make()
        return sensor

    def all(self) -> dict[K, Sensor]:
        """Return a copy of the sensors, safe to iterate while another thread adds one."""
        return self._sensors.copy()
