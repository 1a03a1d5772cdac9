"""What strangers can cause as often as they like: few sentences within a minute are logged, and then the number of the others.

So nobody fills a disk who knows no password. What those do who are known is not told here.
"""

from __future__ import annotations

import logging

from ottla.broker.timers import Timers
from ottla.clock import Clock

MOST = 20
SPAN_SECONDS = 60.0
"""So many sentences are logged one by one in this span, which the first of them begins."""


class BoundedLog:
    """Warnings about one kind of thing."""

    def __init__(self, log: logging.Logger, things: str, timers: Timers, clock: Clock) -> None:
        """`things` is what there were more of: `logins failed`."""
        self._log = log
        self._things = things
        self._timers = timers
        self._clock = clock
        self._count = 0

    def tell(self, sentence: str) -> None:
        """Log it as a warning, or count it."""
        if not self._count:
            self._timers.at(self._clock.monotonic() + SPAN_SECONDS, self.tell_rest)
        self._count += 1
        if self._count <= MOST:
            self._log.warning("%s", sentence)

    def tell_rest(self) -> None:
        """The minute is over, or the broker ends: say how many were not logged."""
        if self._count > MOST:
            self._log.warning("%d more %s within that minute", self._count - MOST, self._things)
        self._count = 0
