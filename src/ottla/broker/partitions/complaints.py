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
        self._said_at: dict[str, float] = {}

    def tell(self, sentence: str) -> None:
        """Log it as an error, unless that was done lately."""
        now = self._clock.monotonic()
        said_at = self._said_at.get(sentence)
        if said_at is not None and now - said_at < AGAIN_SECONDS:
            return
        if len(self._said_at) >= MOST:
            self._said_at.clear()
        self._said_at[sentence] = now
        log.error("%s", sentence)
