"""Walking the batches of a log file by their headers, in blocks rather than one read each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct

from ottla.errors import CorruptRecordError
from ottla.model import HasFileno
from ottla.records.batch import HEADER_BYTES, MAGIC, PREFIX_BYTES, BatchHeader, parse_header, verify

HEAD = Struct(">qi4xb6xi")
"""Base offset, length, magic and last offset delta: what finding an offset needs of a header."""
SMALLEST_LENGTH = HEADER_BYTES - PREFIX_BYTES
SEEK_BLOCK = 8192
"""Twice the usual index interval: with small batches one read mostly finds the offset."""
SCAN_BLOCK = 1 << 20


class ScanWindow:
    """The part of a file that is in memory; it moves with the reader."""

    __slots__ = ("_block_bytes", "_data", "_end", "_file", "_start")

    def __init__(self, file: HasFileno, end: int, block_bytes: int) -> None:
        self._file = file
        self._end = end
        self._block_bytes = block_bytes
        self._start = 0
        self._data = memoryview(b"")

    def view(self, position: int, size: int) -> memoryview:
        """`size` bytes from `position`, fewer where the file ends."""
        start = position - self._start
        if start < 0 or start + size > len(self._data):
            wanted = min(max(size, self._block_bytes), self._end - position)
            self._data = memoryview(os.pread(self._file.fileno(), wanted, position))
            self._start, start = position, 0
        return self._data[start : start + size]

    def block(self, position: int) -> memoryview:
        """Return the bytes in memory from `position` on; the next block is read if there are none."""
        start = position - self._start
        if not 0 <= start < len(self._data):
            self.view(position, 1)
            start = 0
        return self._data[start:]


def scan(
    file: HasFileno, position: int, end: int, *, check: bool = False, block_bytes: int = SCAN_BLOCK
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch from `position` up to `end`; with `check` CRCs and counts are verified.

    Raises CorruptRecordError, which says why, at the first that is torn or damaged.
    """
    window = ScanWindow(file, end, block_bytes)
    while position < end:
        header = read_header(window, position, end)
        if check:
            verify(window.view(position, header.size_bytes), 0, header)
        yield position, header
        position += header.size_bytes


def read_header(window: ScanWindow, position: int, end: int) -> BatchHeader:
    """Parse the header of a whole batch at `position`."""
    data = window.view(position, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        raise CorruptRecordError(f"{len(data)} bytes at position {position} are too few for a record batch")
    _, length, magic, _ = HEAD.unpack_from(data)
    if magic != MAGIC or length < SMALLEST_LENGTH:
        raise CorruptRecordError(f"no record batch begins at position {position} (magic {magic}, length {length})")
    if position + PREFIX_BYTES + length > end:
        raise CorruptRecordError(
            f"the record batch at position {position} is torn: {end - position} of {PREFIX_BYTES + length} bytes"
        )
    return parse_header(data)


def find_offset(file: HasFileno, position: int, end: int, offset: int) -> int:
    """Return the position of the first batch from `position` on that ends at or after `offset`; `end` if there is none.

    The hot path of a fetch: it looks at headers only, and at those only as far as it must.
    """
    fd = file.fileno()
    while position < end:
        block = os.pread(fd, min(SEEK_BLOCK, end - position), position)
        at, last = 0, len(block) - HEADER_BYTES
        while at <= last:
            base_offset, length, magic, last_delta = HEAD.unpack_from(block, at)
            if magic != MAGIC or length < SMALLEST_LENGTH:
                raise CorruptRecordError(f"no record batch begins at position {position + at}")
            if base_offset + last_delta >= offset:
                if position + at + PREFIX_BYTES + length > end:
                    raise CorruptRecordError(f"the record batch at position {position + at} is torn")
                return position + at
            at += PREFIX_BYTES + length
        if at == 0:
            raise CorruptRecordError(f"the record batch at position {position} is torn")
        position += at
    return end


def find_end(file: HasFileno, position: int, limit: int, *, min_one: bool) -> int:
    """Return the end of the last whole batch below `limit`; the first batch counts in any case if `min_one`."""
    fd, end = file.fileno(), position
    while end < limit or (min_one and end == position):
        block = os.pread(fd, SEEK_BLOCK, end)
        at, last = 0, len(block) - HEADER_BYTES
        while at <= last:
            _, length, magic, _ = HEAD.unpack_from(block, at)
            if magic != MAGIC or length < SMALLEST_LENGTH:
                raise CorruptRecordError(f"no record batch begins at position {end + at}")
            following = end + at + PREFIX_BYTES + length
            if following > limit and not (min_one and end + at == position):
                return end + at
            at += PREFIX_BYTES + length
        if at == 0:
            raise CorruptRecordError(f"the record batch at position {end} is torn")
        end += at
    return end
