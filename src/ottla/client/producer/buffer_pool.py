"""Limits the memory of batches that wait or are in flight, after Kafka's `BufferPool`.

Counts bytes only; the batches own the memory. If too few bytes are free, the caller queues with a `MemoryClaim`. Claims are granted
in order, so that small records do not starve a large one. Nothing here waits; any thread may call.
"""

from __future__ import annotations

import threading
from collections import deque


class MemoryClaim:
    """A queued request for memory: waiting, then granted, then spent on a batch or withdrawn."""

    __slots__ = ("granted", "size", "spent")

    def __init__(self, size: int) -> None:
        self.size = size
        self.granted = False
        self.spent = False
        """True if a batch owns the bytes and will return them."""


class BufferPool:
    """The free part of `buffer.memory`, and the claims that wait for it."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.closed = False
        self._available = total_bytes
        self._lock = threading.Lock()
        self._claims: deque[MemoryClaim] = deque()

    @property
    def available_bytes(self) -> int:
        """The free bytes."""
        return self._available

    @property
    def queued(self) -> int:
        """The number of waiting claims."""
        return len(self._claims)

    def allocate(self, size: int) -> bool:
        """Take `size` bytes if they are free and no claim waits."""
        with self._lock:
            if self._claims or self._available < size:
                return False
            self._available -= size
            return True

    def claim(self, size: int) -> MemoryClaim:
        """Queue for `size` bytes. The caller withdraws the claim in any case, also after it is spent."""
        claim = MemoryClaim(size)
        with self._lock:
            self._claims.append(claim)
            self._grant()
        return claim

    def withdraw(self, claim: MemoryClaim) -> None:
        """Remove a claim; return its bytes if they were granted and not spent."""
        with self._lock:
            if not claim.granted:
                self._claims.remove(claim)
            elif not claim.spent:
                self._available += claim.size
            claim.granted = claim.spent = True
            self._grant()

    def deallocate(self, size: int) -> None:
        """Return `size` bytes."""
        with self._lock:
            self._available += size
            assert self._available <= self.total_bytes
            if self._claims:
                self._grant()

    def close(self) -> None:
        """End the waits for memory."""
        self.closed = True

    def _grant(self) -> None:
        while self._claims and self._claims[0].size <= self._available:
            claim = self._claims.popleft()
            self._available -= claim.size
            claim.granted = True
