"""The backoff of failed requests."""

from __future__ import annotations

from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER


class RetryTimer:
    """Counts consecutive failures."""

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self.at = -FOREVER
        """The earliest time of the next attempt."""
        self._backoff = backoff
        self._attempts = 0

    def reset(self) -> None:
        """Reset the count of failures."""
        self._attempts = 0

    def record_failure(self, now: float) -> float:
        """Count a failure and return the time of the next attempt."""
        self._attempts += 1
        self.at = now + self._backoff.span(self._attempts)
        return self.at

    def skip_wait(self) -> None:
        """Allow the next attempt at once."""
        self.at = -FOREVER
