"""Tokens that come at a rate, as many as fit; who takes more than there are owes them (KIP-599)."""

from __future__ import annotations


class TokenBucket:
    """Full at first. Time is in seconds."""

    __slots__ = ("_tokens", "_when", "limit", "room")

    def __init__(self, limit: float, seconds: float, now: float) -> None:
        self.limit = limit
        """Tokens that come in a second."""
        self.room = limit * seconds
        self._tokens = self.room
        self._when = now

    def take(self, count: float, now: float) -> bool:
        """Take so many, if nothing is owed: one request may run into debt, the next may not."""
        self._fill(now)
        if self._tokens < 0:
            return False
        self._tokens -= count
        return True

    def owe(self, count: float, now: float) -> None:
        """Take so many whatever is owed, of those who know of no refusal."""
        self._fill(now)
        self._tokens -= count

    def throttle_ms(self, now: float) -> float:
        """How long until nothing is owed."""
        self._fill(now)
        return max(-self._tokens / self.limit * 1000, 0.0)

    def _fill(self, now: float) -> None:
        self._tokens = min(self._tokens + (now - self._when) * self.limit, self.room)
        self._when = now
