"""The log level of failed calls that are retried."""

from __future__ import annotations

import logging

QUIET_SECONDS = 10.0
"""The shortest time between two warnings."""


class RetryWarnings:
    """Chooses a warning for the first failed call and for one in each further interval, INFO for the others.

    Without a warning, a program whose function always fails would be silent until the last attempt. With all of them, a
    service that is down would fill the log.
    """

    def __init__(self) -> None:
        self._quiet_until = float("-inf")

    def level(self, now: float) -> int:
        """Return the level for a call that failed at this time, in seconds."""
        if now < self._quiet_until:
            return logging.INFO
        self._quiet_until = now + QUIET_SECONDS
        return logging.WARNING
