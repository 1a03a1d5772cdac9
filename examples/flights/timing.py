"""Measure the time of each stage. A moment belongs to the stage that was entered last."""

from __future__ import annotations

import time
from collections.abc import Callable


class Timing:
    """Seconds by stage, in the order in which the stages were first entered."""

    def __init__(self, stage: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = stage
        self._since = clock()
        self.seconds: dict[str, float] = {}

    def enter(self, stage: str) -> None:
        """Start the stage `stage` and end the current one."""
        now = self._clock()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    def __str__(self) -> str:
        """`85 s: 31 s Spark's start, …`, the longest first, without what took less than a second."""
        self.enter(self._stage)
        longest = sorted(self.seconds.items(), key=lambda stage: -stage[1])
        return f"{sum(self.seconds.values()):.0f} s: " + ", ".join(
            f"{s:.0f} s {name}" for name, s in longest if s >= 0.5
        )
