"""The values of a sensor at one time: in total, and within the last windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class SensorReading(NamedTuple):
    """The values of a sensor at one time."""

    event_count: int
    """Number of recorded values since the client started."""
    total: float
    recent_count: int
    """Number of values within the last windows."""
    recent_total: float
    """Sum of the values within the last windows."""
    recent_max: float
    """The largest value within the last windows; minus infinity if there is none."""
    window_seconds: float
    """Length of the last windows in seconds."""

    @property
    def average(self) -> float:
        """The average within the last windows; NaN if nothing was recorded, as in Java."""
        return self.recent_total / self.recent_count if self.recent_count else math.nan

    @property
    def maximum(self) -> float:
        return self.recent_max if self.recent_count else math.nan

    def per_second(self, amount: float) -> float:
        """Convert an amount of the last windows to a rate per second."""
        return amount / self.window_seconds if self.window_seconds > 0 else 0.0


NOTHING = SensorReading(0, 0.0, 0, 0.0, -math.inf, 0.0)


def combine_readings(readings: Iterable[SensorReading]) -> SensorReading:
    """Combine several readings into one."""
    event_count, total, recent_count, recent_total, recent_max, window_seconds = NOTHING
    for each in readings:
        event_count, total = event_count + each.event_count, total + each.total
        recent_count, recent_total = recent_count + each.recent_count, recent_total + each.recent_total
        recent_max, window_seconds = max(recent_max, each.recent_max), max(window_seconds, each.window_seconds)
    return SensorReading(event_count, total, recent_count, recent_total, recent_max, window_seconds)
