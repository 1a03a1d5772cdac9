"""How much memory requests may take, those that are still arriving included, and who may go on when it is used up.

What counts is what has arrived, not what was announced, so nobody can reserve memory by a lie. When it is short, small
requests are read as before, and of the connections that are amid a big one a single one goes on: the elected, which
can always complete its request. If its peer is too slow for that it has to go, or everybody would wait for it.

Pure: the selector does what is said here, and says what it did.
"""

from __future__ import annotations

from collections.abc import Hashable

UNLIMITED = 2**63 - 1
SMALL_BYTES = 64 * 1024
"""What misses no more than this is read whether memory is short or not."""
CAREFUL_BYTES = 16 * 1024
"""What is read at once from a connection that might begin a big request when memory is short."""
READMITTED_AT_ONCE = 16
PATIENCE_SECONDS = 10.0
LEAST_BYTES_PER_SECOND = 100_000
"""The elected has so many seconds, and more by this speed for what it misses."""


class MemoryBudget:
    """The account of one selector and of those who handle what it receives."""

    __slots__ = ("_deadline", "_elected", "_stalled", "handed_out", "limit", "unfinished")

    def __init__(self, limit: int = UNLIMITED) -> None:
        self.limit = limit
        self.handed_out = 0
        """Bytes of whole requests; whoever is done with one takes its size off."""
        self.unfinished = 0
        """Bytes held for requests that are still arriving."""
        self._stalled: dict[Hashable, int] = {}
        self._elected: Hashable | None = None
        self._deadline = 0.0

    @property
    def short(self) -> bool:
        """Whether the limit is reached."""
        return self.handed_out + self.unfinished >= self.limit

    def may_go_on(self, who: Hashable, missing_bytes: int, now: float) -> bool:
        """Whether a connection may read on, amid a request, while memory is short; else it is stalled."""
        if missing_bytes <= SMALL_BYTES or who == self._elected:
            return True
        if self._elected is None and self.handed_out < self.limit:
            self._elect(who, missing_bytes, now)
            return True
        self._stalled[who] = missing_bytes
        return False

    def completed(self, who: Hashable) -> None:
        """A request of this connection is whole."""
        if who == self._elected:
            self._elected = None

    def release(self, who: Hashable, held_bytes: int) -> None:
        """The connection is no more, and neither is what it held."""
        self.unfinished -= held_bytes
        self._stalled.pop(who, None)
        self.completed(who)

    def readmit(self, now: float) -> list[Hashable]:
        """Who may read again: some when there is room, else the one that misses least, if none is elected."""
        if not self._stalled:
            return []
        if not self.short:
            chosen = list(self._stalled)[:READMITTED_AT_ONCE]
        elif self._elected is None and self.handed_out < self.limit:
            nearest = min(self._stalled, key=self._stalled.__getitem__)
            self._elect(nearest, self._stalled[nearest], now)
            chosen = [nearest]
        else:
            return []
        for who in chosen:
            del self._stalled[who]
        return chosen

    def has_news(self) -> bool:
        """Whether `readmit` would let anybody go on."""
        if not self._stalled:
            return False
        return not self.short or (self._elected is None and self.handed_out < self.limit)

    def deadline(self) -> float | None:
        """When the elected must be done; None where nobody waits for it."""
        return self._deadline if self._elected is not None and self._stalled else None

    def too_slow(self, now: float) -> Hashable | None:
        """Who has kept the others waiting for too long."""
        deadline = self.deadline()
        return self._elected if deadline is not None and deadline <= now else None

    def check(self) -> None:
        assert self.handed_out >= 0
        assert self.unfinished >= 0
        assert self._elected not in self._stalled

    def _elect(self, who: Hashable, missing_bytes: int, now: float) -> None:
        self._elected = who
        self._deadline = now + PATIENCE_SECONDS + missing_bytes / LEAST_BYTES_PER_SECOND
