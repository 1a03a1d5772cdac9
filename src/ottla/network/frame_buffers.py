"""Reuse of memory for large frames.

New memory is expensive: the system clears it page by page, and Python clears it again. At 1 MB per frame this took a
third of a broker's time. A buffer can be reused when no memoryview of it exists, which Python itself detects.
"""

from __future__ import annotations

import mmap
import sys

LEAST_BYTES = 64 * 1024
"""Smaller frames are cheap, and get memory of their own."""
MOST_BYTES = 2 * 1024 * 1024
"""Larger frames are rare among requests, and their memory would be kept without use."""
COUNT = 6
"""The maximum number of kept buffers; more are in use only if many connections send at once."""
LARGEST = 3
"""The number of buffers of maximum size that may be kept."""


def allocate_untouched(size: int) -> bytearray | mmap.mmap:
    """Return memory that the system allocates only when it is written to. It is private in a forked child."""
    if sys.platform == "win32":
        return bytearray(size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class FrameBuffers:
    """Buffers that were used for frames; some may still be in use."""

    __slots__ = ("_kept", "most_bytes")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Keep no frames above `most_bytes`."""
        self._kept: list[bytearray] = []
        self.most_bytes = most_bytes

    def try_allocate(self, size: int) -> bytearray | None:
        """Return a free buffer of at least `size` bytes with arbitrary content, or None."""
        if LEAST_BYTES <= size <= self.most_bytes:
            for number, buffer in enumerate(self._kept):
                if len(buffer) >= size and is_free(buffer):
                    return self._kept.pop(number)
        return None

    def keep_buffer(self, buffer: bytearray) -> None:
        """Keep a buffer for reuse; the smallest one is dropped if there are too many."""
        if not LEAST_BYTES <= len(buffer) <= self.most_bytes:
            return
        self._kept.append(buffer)
        while len(self._kept) > COUNT or sum(map(len, self._kept)) > LARGEST * self.most_bytes:
            del self._kept[min(range(len(self._kept)), key=lambda number: len(self._kept[number]))]


def is_free(buffer: bytearray) -> bool:
    """Return true if no memoryview of the buffer exists: Python refuses to resize an exported buffer."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True
