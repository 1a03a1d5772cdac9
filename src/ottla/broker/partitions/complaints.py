"""What goes wrong again and again is told once a minute: a client that is refused comes back ten times a second."""

from __future__ import annotations

import logging

from ottla.clock import Clock

log = logging.getLogger(__name__)
AGAIN_SECONDS = 60.0
MOST = 1000
"""Sentences that are remembered."""


class Complaints:
    """Sentences, and when each was told last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}

    def tell(self, sentence: str) -> None:
        """Log it as an error, unless that was done lately."""
        now = self._clock.monotonic()
        told = self._told.get(sentence)
        if told is not None and now - told < AGAIN_SECONDS:
            return
        if len(self._told) >= MOST:
            self._told.clear()
        self._told[sentence] = now
        log.error("%s", sentence)
