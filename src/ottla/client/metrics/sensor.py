"""A number that is counted: how often, how much in all, how much lately, the most.

To record costs three additions, of C's numbers where it is compiled, and no look at a clock. `Registry.tick` marks where all sensors
stand at the end of a window, and whoever reads takes the difference to a mark (`reading.py`).
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from ottla.client.metrics.reading import Reading


class Mark(NamedTuple):
    """Where a sensor stood when a window ended."""

    at: float
    times: int
    total: float
    most: float
    """Of the window that ended."""


class Sensor:
    """What is recorded by one thread, and read by any."""

    __slots__ = ("_marks", "count", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.most = -math.inf
        """Since the last mark."""
        self._marks: deque[Mark] = deque()

    def record(self, value: float) -> None:
        """Once, and so much."""
        self.count += 1
        self.total += value
        if value > self.most:
            self.most = value

    def mark(self, now: float, samples: int) -> None:
        """A window ends, or the first begins; `samples` that have ended are kept."""
        self._marks.append(Mark(now, self.count, self.total, self.most))
        self.most = -math.inf
        while len(self._marks) > samples + 1:
            self._marks.popleft()

    def read(self, since: float, now: float) -> Reading:
        """What was recorded in all, and after the first mark that is not before `since`."""
        marks = [mark for mark in self._marks.copy() if mark.at >= since]
        if not marks:
            return Reading(self.count, self.total, 0, 0.0, -math.inf, now - since)
        base, most = marks[0], self.most
        for mark in marks[1:]:
            most = max(most, mark.most)
        return Reading(self.count, self.total, self.count - base.times, self.total - base.total, most, now - base.at)
