"""A token bucket that refills at a rate, up to a capacity, and may go into debt (KIP-599)."""

from __future__ import annotations


class TokenBucket:
    """Full at first. Time is in seconds."""

    __slots__ = ("_tokens", "_when", "limit", "room")

    def __init__(self, limit: float, seconds: float, now: float) -> None:
        self.limit = limit
        """Tokens per second."""
        self.room = limit * seconds
        self._tokens = self.room
        self._when = now

    def try_take(self, count: float, now: float) -> bool:
        """Take tokens unless the bucket is in debt: one request may cause debt, the next is rejected."""
        self._fill(now)
        if self._tokens < 0:
            return False
        self._tokens -= count
        return True

    def take_into_debt(self, count: float, now: float) -> None:
        """Take tokens even if the bucket is in debt, for clients that cannot be rejected."""
        self._fill(now)
        self._tokens -= count

    def throttle_ms(self, now: float) -> float:
        """Return the time in ms until the debt is paid."""
        self._fill(now)
        return max(-self._tokens / self.limit * 1000, 0.0)

    def _fill(self, now: float) -> None:
        self._tokens = min(self._tokens + (now - self._when) * self.limit, self.room)
        self._when = now
