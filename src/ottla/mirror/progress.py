"""How quickly a mirror carries, and how long the rest takes."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

SPAN_SECONDS = 10.0
"""The rate is that of so long a time."""


class Standing(NamedTuple):
    """What can be told at a moment."""

    records: int
    """Carried since the start."""
    rate: float
    """Records a second."""
    rest: int
    """Offsets of the source that are not read yet; some may be no records."""

    @property
    def seconds_left(self) -> float | None:
        """None while nothing moves."""
        return None if self.rest and not self.rate else self.rest / self.rate if self.rest else 0.0

    @property
    def text(self) -> str:
        left = self.seconds_left
        time = "" if left is None or not self.rest else f", {int(left) // 60}:{int(left) % 60:02d} left"
        return f"{self.records:,} records carried, {self.rate:,.0f}/s, {self.rest:,} to go{time}"


class Progress:
    """Counts, and remembers the last seconds."""

    def __init__(self, now: float) -> None:
        self.records = 0
        self._past: deque[tuple[float, int]] = deque([(now, 0)])

    def note(self, count: int, now: float) -> None:
        """So many more were carried."""
        self.records += count
        self._past.append((now, self.records))
        while len(self._past) > 2 and self._past[1][0] <= now - SPAN_SECONDS:
            self._past.popleft()

    def standing(self, rest: int, now: float) -> Standing:
        since, before = self._past[0]
        span = now - since
        return Standing(self.records, (self.records - before) / span if span > 0 else 0.0, rest)
