"""Lets an idle stream wait for records, in place of repeated triggers.

Each trigger costs Spark about ten milliseconds, with or without rows. So a check that finds no records, after several
others, waits and polls the brokers only. The first checks return at once: Spark needs one of them to close windows
after the last records.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ottla.clock import Clock

LOOKS = 3
"""The number of consecutive empty checks before one waits."""
PAUSE = 1.0
"""Seconds between two requests to the brokers."""


class IdleWait:
    """The checks of one query."""

    def __init__(self, seconds: float, clock: Clock, pause: Callable[[float], None] = time.sleep) -> None:
        self.seconds = seconds
        self._clock, self._pause = clock, pause
        self._empty = 0

    def found(self) -> None:
        """Record that a check found records."""
        self._empty = 0

    def wait(self, is_news: Callable[[], bool]) -> bool:
        """Record that a check found nothing, and wait for records if it is time to; return True if there are some."""
        self._empty += 1
        if self._empty <= LOOKS:
            return False
        deadline = self._clock.monotonic() + self.seconds
        while self._clock.monotonic() + PAUSE <= deadline:
            self._pause(PAUSE)
            if is_news():
                return True
        return False
