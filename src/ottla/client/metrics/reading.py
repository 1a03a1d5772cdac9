"""What a sensor comes to at one moment, for whoever looks: in all, and within the last windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


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


def together(readings: Iterable[Reading]) -> Reading:
    """Several as if they were one."""
    times, total, lately, amount, most, seconds = NOTHING
    for each in readings:
        times, total = times + each.times, total + each.total
        lately, amount = lately + each.lately, amount + each.amount
        most, seconds = max(most, each.most), max(seconds, each.seconds)
    return Reading(times, total, lately, amount, most, seconds)
