"""How a stream that has nothing to do waits for records, instead of having Spark ask again and again.

Each of Spark's triggers costs a Spark that looks for rows some ten milliseconds, whether there are any or not. A look that found none,
after others that found none, therefore stays, and asks the brokers alone. The first looks answer at once: with one of them
Spark ends windows that the last records have closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ottla.clock import Clock

LOOKS = 3
"""How many looks in a row find nothing before one waits."""
PAUSE = 1.0
"""Seconds between two questions."""


class IdleWait:
    """The looks of one query."""

    def __init__(self, seconds: float, clock: Clock, pause: Callable[[float], None] = time.sleep) -> None:
        self.seconds = seconds
        self._clock, self._pause = clock, pause
        self._empty = 0

    def found(self) -> None:
        """A look has found something."""
        self._empty = 0

    def wait(self, is_news: Callable[[], bool]) -> bool:
        """A look has found nothing: wait for news, if it is time to; whether there are some."""
        self._empty += 1
        if self._empty <= LOOKS:
            return False
        deadline = self._clock.monotonic() + self.seconds
        while self._clock.monotonic() + PAUSE <= deadline:
            self._pause(PAUSE)
            if is_news():
                return True
        return False
