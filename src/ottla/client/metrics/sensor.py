"""A number that is counted: how often, how much in all, how much lately, the most.

To record costs three additions and no look at a clock. `Registry.tick` marks where all sensors stand at the end of a window, and
whoever reads takes the difference to a mark.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple


class Mark(NamedTuple):
    """Where a sensor stood when a window ended."""

    at: float
    times: int
    total: float
    most: float
    """Of the window that ended."""


class Reading(NamedTuple):
    """A sensor at one moment."""

    times: int
    """How often since the client began."""
    total: float
    lately: int
    """How often within the last windows."""
    amount: float
    """How much within these."""
    most: float
    """In one of these times; minus infinity when there was none."""
    seconds: float
    """How long these windows are."""

    @property
    def average(self) -> float:
        """Of the last windows; NaN when nothing was recorded, as in Java."""
        return self.amount / self.lately if self.lately else math.nan

    @property
    def maximum(self) -> float:
        return self.most if self.lately else math.nan

    def per_second(self, amount: float) -> float:
        """What `amount`, of the last windows, is in a second."""
        return amount / self.seconds if self.seconds > 0 else 0.0


NOTHING = Reading(0, 0.0, 0, 0.0, -math.inf, 0.0)


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
        base, most = marks[0], max([self.most, *(mark.most for mark in marks[1:])])
        return Reading(self.count, self.total, self.count - base.times, self.total - base.total, most, now - base.at)


def together(readings: Iterable[Reading]) -> Reading:
    """Several as if they were one."""
    times, total, lately, amount, most, seconds = NOTHING
    for each in readings:
        times, total = times + each.times, total + each.total
        lately, amount = lately + each.lately, amount + each.amount
        most, seconds = max(most, each.most), max(seconds, each.seconds)
    return Reading(times, total, lately, amount, most, seconds)
