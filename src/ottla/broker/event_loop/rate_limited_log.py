"""Rate-limited warnings about events that unauthenticated clients can cause: few are logged within a minute, the others are counted.

This keeps such clients from filling the disk with logs. Events of authenticated clients are logged elsewhere, without a
limit.
"""

from __future__ import annotations

import logging

from ottla.broker.event_loop.timers import Timers
from ottla.clock import Clock

MOST = 20
SPAN_SECONDS = 60.0
"""The time, from its first warning on, in which that many warnings are logged."""


class RateLimitedLog:
    """Warnings about one kind of thing."""

    def __init__(self, log: logging.Logger, things: str, timers: Timers, clock: Clock) -> None:
        """`things` is what there were more of: `logins failed`."""
        self._log = log
        self._things = things
        self._timers = timers
        self._clock = clock
        self._count = 0

    def log(self, sentence: str) -> None:
        """Log it as a warning, or count it."""
        if not self._count:
            self._timers.schedule(self._clock.monotonic() + SPAN_SECONDS, self.log_suppressed)
        self._count += 1
        if self._count <= MOST:
            self._log.warning("%s", sentence)

    def log_suppressed(self) -> None:
        """Log the number of suppressed lines, at the end of the minute or of the broker."""
        if self._count > MOST:
            self._log.warning("%d more %s in the last minute", self._count - MOST, self._things)
        self._count = 0
