"""Time as a value that can be handed in: only shells hold a clock, and tests hold a manual one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: one for spans, one for calendars."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as records carry them."""
        ...


def wall_ms() -> int:
    """Milliseconds since the epoch, by the machine's clock; compiled loops read it in C (`native_clock.pxd`)."""
    return time.time_ns() // 1_000_000


class SystemClock:
    """The machine's; each reading is the function itself, as loops call it often."""

    monotonic = staticmethod(time.monotonic)
    wall_ms = staticmethod(wall_ms)


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: float = 0.0, wall_ms: int = 1_000_000) -> None:
        self._now = now
        self._wall_ms = wall_ms

    def monotonic(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        return self._wall_ms

    def set_wall_ms(self, wall_ms: int) -> None:
        """Put the calendar right, or wrong: nothing of that is a span that passes."""
        self._wall_ms = wall_ms

    def advance(self, seconds: float) -> None:
        """The calendar first: what another thread does because a span is over finds it where it is then."""
        self._wall_ms += round(seconds * 1000)
        self._now += seconds
