"""The memory that records waiting to be sent may take.

Only keeps count: the bytes themselves are the batches'. Those who wait are served in the order they came, so that a
large record is not starved by small ones.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ottla.errors import BufferExhaustedError


class BufferPool:
    """`buffer.memory` and who holds how much of it."""

    def __init__(self, total_bytes: int, monotonic: Callable[[], float]) -> None:
        self.total_bytes = total_bytes
        self._available = total_bytes
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._closed = False

    @property
    def available_bytes(self) -> int:
        """What nobody holds."""
        return self._available

    @property
    def queued(self) -> int:
        """How many threads wait for memory."""
        return len(self._waiting)

    def allocate(self, size: int, timeout: float, on_wait: Callable[[], None] = lambda: None) -> None:
        """Take `size` bytes, waiting up to `timeout` seconds; BufferExhaustedError when they do not come free.

        `on_wait` is called once before waiting, so that the sender can be told to make room.
        """
        with self._changed:
            if self._available >= size and not self._waiting:
                self._available -= size
                return
            ticket = object()
            self._waiting.append(ticket)
        try:
            on_wait()
            self._wait_in_line(ticket, size, timeout)
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def deallocate(self, size: int) -> None:
        """Give `size` bytes back."""
        with self._changed:
            self._available += size
            assert self._available <= self.total_bytes
            if self._waiting:
                self._changed.notify_all()

    def close(self) -> None:
        """Nobody needs to wait any more: they get their error at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait_in_line(self, ticket: object, size: int, timeout: float) -> None:
        deadline = self._monotonic() + timeout
        with self._changed:
            while not self._closed and (self._waiting[0] is not ticket or self._available < size):
                left = deadline - self._monotonic()
                if left <= 0:
                    raise BufferExhaustedError(
                        f"no room for {size} bytes within max.block.ms = {timeout * 1000:.0f}: {self.total_bytes} bytes"
                        f" (buffer.memory) are waiting to be sent; raise one of the two, or send more slowly"
                    )
                self._changed.wait(left)
            if self._closed:
                raise BufferExhaustedError(f"the producer was closed while {size} bytes waited for buffer memory")
            self._available -= size
