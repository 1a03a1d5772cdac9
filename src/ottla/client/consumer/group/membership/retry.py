"""When to try again what has failed."""

from __future__ import annotations

from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER


class Retry:
    """Counts what fails in a row."""

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self.at = -FOREVER
        """Not before this moment."""
        self._backoff = backoff
        self._attempts = 0

    def succeeded(self) -> None:
        """The next failure is the first."""
        self._attempts = 0

    def failed(self, now: float) -> float:
        """One more; returns the moment of the next try."""
        self._attempts += 1
        self.at = now + self._backoff.span(self._attempts)
        return self.at

    def skip_wait(self) -> None:
        """There is nothing to wait for."""
        self.at = -FOREVER
