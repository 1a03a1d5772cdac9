"""The clock as a constructor argument, so that tests can use a manual one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock for durations, and one for timestamps."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start; never decreases."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, as in records."""
        ...


def wall_ms() -> int:
    """Return milliseconds since the epoch, by the system clock; compiled loops read it in C (`native_clock.pxd`)."""
    return time.time_ns() // 1_000_000


class SystemClock:
    """The system clock; its methods are the functions themselves, because loops call them often."""

    monotonic = staticmethod(time.monotonic)
    wall_ms = staticmethod(wall_ms)


class ManualClock:
    """A clock that changes only by method calls."""

    def __init__(self, now: float = 0.0, wall_ms: int = 1_000_000) -> None:
        self._now = now
        self._wall_ms = wall_ms

    def monotonic(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        return self._wall_ms

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock without a passage of time."""
        self._wall_ms = wall_ms

    def advance(self, seconds: float) -> None:
        """Advance both clocks.

        The wall clock changes first, so that a thread that sees the end of a duration also sees the new time.
        """
        self._wall_ms += round(seconds * 1000)
        self._now += seconds
