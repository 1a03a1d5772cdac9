"""The batches of a log file, stepping over what is damaged to the next that is whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import HasFileno
from ottla.records.batch import ATTRIBUTES_POSITION, CODEC_MASK, HEADER_BYTES, MAGIC, MAGIC_POSITION, BatchHeader
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.storage.batches.scan import SCAN_BLOCK, ScanWindow, read_header

MAGIC_BYTE = bytes([MAGIC])
LENGTH_POSITION = 8


class Gap(NamedTuple):
    """Bytes that are part of no whole batch."""

    position: int
    size_bytes: int
    reason: str


class StoredBatch(NamedTuple):
    """A whole batch; its bytes are valid until the walk continues."""

    position: int
    header: BatchHeader
    data: memoryview


def walk(file: HasFileno, position: int, end: int) -> Iterator[StoredBatch | Gap]:
    """Everything from `position` up to `end`."""
    window = ScanWindow(file, end, SCAN_BLOCK)
    while position < end:
        found = read_batch_at(window, position, end)
        if isinstance(found, StoredBatch):
            yield found
            position += found.header.size_bytes
        else:
            following = find_next_batch(window, position, end)
            yield Gap(position, following - position, found)
            position = following


def read_batch_at(window: ScanWindow, position: int, end: int) -> StoredBatch | str:
    """Return the batch at a position, or the reason why there is none."""
    try:
        header = read_header(window, position, end)
    except CorruptRecordError as error:
        return str(error)
    data = window.view(position, header.size_bytes)
    return find_fault(data, header) or StoredBatch(position, header, data)


def find_fault(data: memoryview, header: BatchHeader) -> str | None:
    """Return the fault of a batch that is there as a whole; None if there is none."""
    if len(data) < header.size_bytes:
        return f"only {len(data)} of the {header.size_bytes} bytes of the batch could be read"
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        return f"the batch counts {header.count} records in {header.last_offset_delta + 1} offsets"
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        return f"the batch names compression codec {header.attributes & CODEC_MASK}, which does not exist"
    actual = crc32c(data[ATTRIBUTES_POSITION : header.size_bytes])
    return None if actual == header.crc else f"the batch has CRC {actual:#010x}, its header says {header.crc:#010x}"


def find_next_batch(window: ScanWindow, position: int, end: int) -> int:
    """Return the position of the next whole batch after a damaged one; `end` if there is none."""
    try:
        expected = position + read_header(window, position, end).size_bytes
        if expected == end or isinstance(read_batch_at(window, expected, end), StoredBatch):
            return expected
    except CorruptRecordError:
        pass
    for start in range(position + 1, end, SCAN_BLOCK - HEADER_BYTES):
        block = bytes(window.view(start, min(SCAN_BLOCK, end - start)))
        for candidate in find_candidates(block):
            if isinstance(read_batch_at(window, start + candidate, end), StoredBatch):
                return start + candidate
    return end


def find_candidates(block: bytes) -> Iterator[int]:
    """Yield the positions at which a batch may start: the magic number is there, and neither base offset nor length is negative.

    The search is for one byte, so that a gigabyte of zeros, which a crash leaves of a preallocated file, is passed quickly.
    """
    at = block.find(MAGIC_BYTE, MAGIC_POSITION)
    while at >= 0:
        start = at - MAGIC_POSITION
        if block[start] < 0x80 and block[start + LENGTH_POSITION] < 0x80:
            yield start
        at = block.find(MAGIC_BYTE, at + 1)
