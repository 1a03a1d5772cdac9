"""The memory limit for requests, including partly received ones (`queued.max.request.bytes`, KIP-72).

Only received bytes count, not announced ones, so that a peer cannot reserve memory by a large length. When memory is
short, small requests are still read, and of the connections in the middle of a large request exactly one may continue:
the elected one, which can always complete its request. If its peer is too slow, the connection is closed, because all
others would wait for it.

Pure: the selector executes the decisions, and reports what it received.
"""

from __future__ import annotations

from collections.abc import Hashable

UNLIMITED = 2**63 - 1
SMALL_BYTES = 64 * 1024
"""A request that lacks at most this many bytes is read even if memory is short."""
CAREFUL_BYTES = 16 * 1024
"""The number of bytes read at once from a connection that might start a large request when memory is short."""
READMITTED_AT_ONCE = 16
PATIENCE_SECONDS = 10.0
LEAST_BYTES_PER_SECOND = 100_000
"""The elected connection has PATIENCE_SECONDS, plus the time for its missing bytes at this rate."""


class MemoryBudget:
    """The account of one selector and of the handlers of its requests."""

    __slots__ = ("_deadline", "_elected", "_stalled", "handed_out", "limit", "unfinished")

    def __init__(self, limit: int = UNLIMITED) -> None:
        self.limit = limit
        self.handed_out = 0
        """Bytes of complete requests; their handler subtracts the size when it is done."""
        self.unfinished = 0
        """Bytes of requests that are partly received."""
        self._stalled: dict[Hashable, int] = {}
        self._elected: Hashable | None = None
        self._deadline = 0.0

    @property
    def is_exhausted(self) -> bool:
        """True if the limit is reached."""
        return self.handed_out + self.unfinished >= self.limit

    def can_continue_reading(self, connection_id: Hashable, missing_bytes: int, now: float) -> bool:
        """Return true if a connection may continue to read a request while memory is short; otherwise it is stalled."""
        if missing_bytes <= SMALL_BYTES or connection_id == self._elected:
            return True
        if self._elected is None and self.handed_out < self.limit:
            self._elect_reader(connection_id, missing_bytes, now)
            return True
        self._stalled[connection_id] = missing_bytes
        return False

    def record_completion(self, connection_id: Hashable) -> None:
        """Note that a request of this connection is complete."""
        if connection_id == self._elected:
            self._elected = None

    def release(self, connection_id: Hashable, held_bytes: int) -> None:
        """Release the memory of a closed connection."""
        self.unfinished -= held_bytes
        self._stalled.pop(connection_id, None)
        self.record_completion(connection_id)

    def take_readmitted(self, now: float) -> list[Hashable]:
        """Return the connections that may read again.

        These are some if there is memory, else the one that lacks least, if none is elected.
        """
        if not self._stalled:
            return []
        if not self.is_exhausted:
            chosen = list(self._stalled)[:READMITTED_AT_ONCE]
        elif self._elected is None and self.handed_out < self.limit:
            nearest = min(self._stalled, key=self._stalled.__getitem__)
            self._elect_reader(nearest, self._stalled[nearest], now)
            chosen = [nearest]
        else:
            return []
        for connection_id in chosen:
            del self._stalled[connection_id]
        return chosen

    def has_readmitted(self) -> bool:
        """Return true if `take_readmitted` would return a connection."""
        if not self._stalled:
            return False
        return not self.is_exhausted or (self._elected is None and self.handed_out < self.limit)

    def deadline(self) -> float | None:
        """Return the time limit of the elected connection; None if no other one waits for it."""
        return self._deadline if self._elected is not None and self._stalled else None

    def find_too_slow(self, now: float) -> Hashable | None:
        """Return the elected connection if its time is over."""
        deadline = self.deadline()
        return self._elected if deadline is not None and deadline <= now else None

    def check(self) -> None:
        assert self.handed_out >= 0
        assert self.unfinished >= 0
        assert self._elected not in self._stalled

    def _elect_reader(self, connection_id: Hashable, missing_bytes: int, now: float) -> None:
        self._elected = connection_id
        self._deadline = now + PATIENCE_SECONDS + missing_bytes / LEAST_BYTES_PER_SECOND
