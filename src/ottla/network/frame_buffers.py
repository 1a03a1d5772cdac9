"""Memory for big frames that is used again once nobody looks at it any more.

Fresh memory is dear: the system clears it page by page, and Python once more. At 1 MB a frame that took a third of a
broker's time. A buffer is free when no view of it is left, which Python itself knows.
"""

from __future__ import annotations

import mmap
import sys

LEAST_BYTES = 64 * 1024
"""Smaller frames cost little; they get memory of their own."""
MOST_BYTES = 2 * 1024 * 1024
"""Larger ones are rare where requests come in, and what they leave behind would be held for nothing."""
COUNT = 6
"""Buffers that are kept at most; more are only in use where many connections send at once."""
LARGEST = 3
"""How many of the largest are kept."""


def untouched(size: int) -> bytearray | mmap.mmap:
    """Memory that the system gives when it is written to: most connections never fill theirs. A forked child has its own."""
    if sys.platform == "win32":
        return bytearray(size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class FrameBuffers:
    """Buffers that were handed out as frames, some of them still in use."""

    __slots__ = ("_kept", "most_bytes")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Frames above `most_bytes` are not kept."""
        self._kept: list[bytearray] = []
        self.most_bytes = most_bytes

    def try_allocate(self, size: int) -> bytearray | None:
        """A buffer of at least `size` bytes, with anything in it; None where there is none to spare."""
        if LEAST_BYTES <= size <= self.most_bytes:
            for number, buffer in enumerate(self._kept):
                if len(buffer) >= size and is_free(buffer):
                    return self._kept.pop(number)
        return None

    def keep(self, buffer: bytearray) -> None:
        """Have it used again when it is free; a small one makes room for a larger."""
        if not LEAST_BYTES <= len(buffer) <= self.most_bytes:
            return
        self._kept.append(buffer)
        while len(self._kept) > COUNT or sum(map(len, self._kept)) > LARGEST * self.most_bytes:
            del self._kept[min(range(len(self._kept)), key=lambda number: len(self._kept[number]))]


def is_free(buffer: bytearray) -> bool:
    """Whether no view of it is left: Python lets nobody change its size before."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True
