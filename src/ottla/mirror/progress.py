"""The rate of a mirror, and the estimated remaining time."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

SPAN_SECONDS = 10.0
"""The interval over which the rate is averaged."""


class ProgressReport(NamedTuple):
    """The progress at a moment."""

    records: int
    """The number of records copied since the start."""
    rate: float
    """Records per second."""
    rest: int
    """Offsets of the source that are not read yet; some may not be records."""

    @property
    def seconds_left(self) -> float | None:
        """None if no record is being copied."""
        return None if self.rest and not self.rate else self.rest / self.rate if self.rest else 0.0

    @property
    def text(self) -> str:
        left = self.seconds_left
        time = "" if left is None or not self.rest else f", {int(left) // 60}:{int(left) % 60:02d} left"
        return f"{self.records:,} records copied, {self.rate:,.0f}/s, {self.rest:,} remaining{time}"


class MirrorProgress:
    """Counts records, and keeps the samples of the last seconds."""

    def __init__(self, now: float) -> None:
        self.records = 0
        self._past: deque[tuple[float, int]] = deque([(now, 0)])

    def add(self, count: int, now: float) -> None:
        """Add copied records."""
        self.records += count
        self._past.append((now, self.records))
        while len(self._past) > 2 and self._past[1][0] <= now - SPAN_SECONDS:
            self._past.popleft()

    def report(self, rest: int, now: float) -> ProgressReport:
        since, before = self._past[0]
        span = now - since
        return ProgressReport(self.records, (self.records - before) / span if span > 0 else 0.0, rest)
