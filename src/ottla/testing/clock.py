"""A clock that a test moves on: the system's, and so much later."""

from __future__ import annotations

import time

from ottla.clock import wall_ms


class TravellingClock:
    """`Clock` of the plugin's broker. Only the broker's own thread moves it."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        """How much later it is for the broker than for everybody else."""

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_ms / 1000

    def wall_ms(self) -> int:
        return wall_ms() + self.ahead_ms
