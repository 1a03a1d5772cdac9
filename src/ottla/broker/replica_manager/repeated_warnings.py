"""Warnings that recur, logged once a minute: a rejected client retries ten times a second."""

from __future__ import annotations

import logging

from ottla.clock import Clock

log = logging.getLogger(__name__)
AGAIN_SECONDS = 60.0
MOST = 1000
"""Sentences that are remembered."""


class RepeatedWarnings:
    """Warnings with the time when each was last logged."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}

    def log(self, sentence: str) -> None:
        """Log it as an error, unless that was done lately."""
        now = self._clock.monotonic()
        said_at = self._logged_at.get(sentence)
        if said_at is not None and now - said_at < AGAIN_SECONDS:
            return
        if len(self._logged_at) >= MOST:
            self._logged_at.clear()
        self._logged_at[sentence] = now
        log.error("%s", sentence)
