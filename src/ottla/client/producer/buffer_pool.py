"""The memory that records waiting to be sent may take.

Only keeps count: the bytes themselves are the batches'. Who finds none free stands in line with a `Claim`, and is served in
the order they came, so that a large record is not starved by small ones. Waits for nobody itself; any thread may call.
"""

from __future__ import annotations

import threading
from collections import deque


class Claim:
    """A place in the line for so many bytes: waiting, then granted, then spent on a batch or withdrawn."""

    __slots__ = ("granted", "size", "spent")

    def __init__(self, size: int) -> None:
        self.size = size
        self.granted = False
        self.spent = False
        """Whether a batch holds the bytes, and will give them back."""


class BufferPool:
    """`buffer.memory` and who holds how much of it."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.closed = False
        self._available = total_bytes
        self._lock = threading.Lock()
        self._line: deque[Claim] = deque()

    @property
    def available_bytes(self) -> int:
        """What nobody holds."""
        return self._available

    @property
    def queued(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def allocate(self, size: int) -> bool:
        """Take `size` bytes if they are free and nobody stands in line for them."""
        with self._lock:
            if self._line or self._available < size:
                return False
            self._available -= size
            return True

    def claim(self, size: int) -> Claim:
        """Stand in line for `size` bytes; who has spent them or wants them no more says `withdraw`."""
        claim = Claim(size)
        with self._lock:
            self._line.append(claim)
            self._serve()
        return claim

    def withdraw(self, claim: Claim) -> None:
        """Leave the line; what was granted and not spent is given back."""
        with self._lock:
            if not claim.granted:
                self._line.remove(claim)
            elif not claim.spent:
                self._available += claim.size
            claim.granted = claim.spent = True
            self._serve()

    def deallocate(self, size: int) -> None:
        """Give `size` bytes back."""
        with self._lock:
            self._available += size
            assert self._available <= self.total_bytes
            if self._line:
                self._serve()

    def close(self) -> None:
        """Nobody needs to wait any more."""
        self.closed = True

    def _serve(self) -> None:
        while self._line and self._line[0].size <= self._available:
            claim = self._line.popleft()
            self._available -= claim.size
            claim.granted = True
