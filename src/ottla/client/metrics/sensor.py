"""A counter of recorded values: their number, sum and maximum, in total and within recent windows.

Recording costs three additions, on C numbers if compiled, and reads no clock. `Registry.tick` saves a mark of all
sensors at the end of each window; a reader computes the difference to a mark (`reading.py`).
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from ottla.client.metrics.reading import SensorReading


class Mark(NamedTuple):
    """The values of a sensor at the end of a window."""

    at: float
    times: int
    total: float
    most: float
    """The maximum within the window that ended."""


class Sensor:
    """Recorded by one thread, read by any."""

    __slots__ = ("_marks", "count", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.most = -math.inf
        """The maximum since the last mark."""
        self._marks: deque[Mark] = deque()

    def record(self, value: float) -> None:
        """Record one value."""
        self.count += 1
        self.total += value
        if value > self.most:
            self.most = value

    def mark(self, now: float, samples: int) -> None:
        """Start a window, and keep the marks of the last `samples` windows."""
        self._marks.append(Mark(now, self.count, self.total, self.most))
        self.most = -math.inf
        while len(self._marks) > samples + 1:
            self._marks.popleft()

    def read(self, since: float, now: float) -> SensorReading:
        """Return the totals, and the values after the first mark that is not before `since`."""
        marks = [mark for mark in self._marks.copy() if mark.at >= since]
        if not marks:
            return SensorReading(self.count, self.total, 0, 0.0, -math.inf, now - since)
        base, most = marks[0], self.most
        for mark in marks[1:]:
            most = max(most, mark.most)
        return SensorReading(
            self.count, self.total, self.count - base.times, self.total - base.total, most, now - base.at
        )
