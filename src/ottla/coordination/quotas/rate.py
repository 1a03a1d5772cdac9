"""How much of something was used in the last seconds, and how long to wait until that is no more than may be."""

from __future__ import annotations

from collections import deque

MS = 1000.0


class Rate:
    """A few samples of the last time, each of a window: an average that neither jumps nor forgets."""

    __slots__ = ("_samples", "count", "window")

    def __init__(self, count: int, window: float) -> None:
        self.count = count
        self.window = window
        """Seconds of a sample."""
        self._samples: deque[list[float]] = deque()
        """The start time and the sum of each sample."""

    def record(self, amount: float, now: float) -> None:
        self._drop(now)
        if not self._samples or now - self._samples[-1][0] >= self.window:
            self._samples.append([now, 0.0])
        self._samples[-1][1] += amount

    def value(self, now: float) -> float:
        """Return the average per second. A new client counts as idle before its first request, because one burst is not a rate."""
        self._drop(now)
        if not self._samples:
            return 0.0
        return sum(amount for _, amount in self._samples) / self._span(now)

    def throttle_ms(self, limit: float, now: float) -> float:
        """Return the time in ms until the average is at the limit; 0 if it is not above."""
        value = self.value(now)
        return (value - limit) / limit * self._span(now) * MS if value > limit else 0.0

    def _span(self, now: float) -> float:
        elapsed = now - self._samples[0][0]
        return elapsed + max(self.count - 1 - int(elapsed / self.window), 0) * self.window

    def _drop(self, now: float) -> None:
        while self._samples and now - self._samples[0][0] >= self.count * self.window:
            self._samples.popleft()
