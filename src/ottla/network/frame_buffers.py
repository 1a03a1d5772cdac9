"""Memory for big frames that is used again once nobody looks at it any more.

Fresh memory is dear: the system clears it page by page, and Python once more. At 1 MB a frame that took a third of a
broker's time. A buffer is free when no view of it is left, which Python itself knows.
"""

from __future__ import annotations

LEAST_BYTES = 64 * 1024
"""Smaller frames cost little; they get memory of their own."""
MOST_BYTES = 2 * 1024 * 1024
"""Larger ones are rare, and what they leave behind would be held for nothing."""
COUNT = 6
"""Buffers that are kept; more are only in use where many connections send at once."""


class FrameBuffers:
    """Buffers that were handed out as frames, some of them still in use."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def take(self, size: int) -> bytearray | None:
        """A buffer of at least `size` bytes, with anything in it; None where there is none to spare."""
        if LEAST_BYTES <= size <= MOST_BYTES:
            for number, buffer in enumerate(self._kept):
                if len(buffer) >= size and is_free(buffer):
                    return self._kept.pop(number)
        return None

    def keep(self, buffer: bytearray) -> None:
        """Have it used again when it is free; a small one makes room for a larger."""
        if not LEAST_BYTES <= len(buffer) <= MOST_BYTES:
            return
        self._kept.append(buffer)
        if len(self._kept) > COUNT:
            del self._kept[min(range(len(self._kept)), key=lambda number: len(self._kept[number]))]


def is_free(buffer: bytearray) -> bool:
    """Whether no view of it is left: Python lets nobody change its size before."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True
