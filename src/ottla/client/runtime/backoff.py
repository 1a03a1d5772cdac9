"""The wait before a retry.

Pure: the random generator is an argument.
"""

from __future__ import annotations

from random import Random

JITTER = 0.2


class ExponentialBackoff:
    """Doubles from `first_ms` up to `most_ms`, each span off by up to a fifth so that clients spread out (KIP-580)."""

    def __init__(self, first_ms: float, most_ms: float, random: Random) -> None:
        self._first = first_ms / 1000
        self._most = max(first_ms, most_ms) / 1000
        self._random = random

    @property
    def longest(self) -> float:
        """The longest result of `span`, in seconds."""
        return self._most

    def span(self, attempts: int) -> float:
        """Return the seconds to wait after `attempts` consecutive failures; 0 after none."""
        if attempts <= 0:
            return 0.0
        plain = min(self._most, self._first * 2.0 ** min(attempts - 1, 60))
        return min(self._most, plain * self._random.uniform(1 - JITTER, 1 + JITTER))
