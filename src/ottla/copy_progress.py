"""The progress of a long copy: a mirror, a backup or a restore. Its rate, and the estimated remaining time. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

SPAN_SECONDS = 10.0
"""The interval over which the rate is averaged."""


class CopyReport(NamedTuple):
    """The progress at a moment."""

    verb: str
    """The finished action in a progress line: copied, backed up, restored or verified."""
    records: int
    rate: float
    """Records per second."""
    remaining: int
    """Offsets that are not processed yet; some may not be records."""

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time; None if no record is being processed."""
        if not self.remaining:
            return 0.0
        return self.remaining / self.rate if self.rate else None

    @property
    def text(self) -> str:
        left = self.seconds_left
        time = f", {int(left) // 60}:{int(left) % 60:02d} left" if left else ""
        return f"{self.records:,} records {self.verb}, {self.rate:,.0f}/s, {self.remaining:,} remaining{time}"


class CopyProgress:
    """Counts records, and keeps the samples of the last seconds."""

    def __init__(self, verb: str, now: float) -> None:
        self.records = 0
        self._verb = verb
        self._samples: deque[tuple[float, int]] = deque([(now, 0)])

    def add(self, count: int, now: float) -> None:
        """Add processed records."""
        self.records += count
        self._samples.append((now, self.records))
        while len(self._samples) > 2 and self._samples[1][0] <= now - SPAN_SECONDS:
            self._samples.popleft()

    def report(self, remaining: int, now: float) -> CopyReport:
        """Return the progress with the number of offsets that remain."""
        since, before = self._samples[0]
        span = now - since
        return CopyReport(
            self._verb, self.records, (self.records - before) / span if span > 0 else 0.0, max(0, remaining)
        )
