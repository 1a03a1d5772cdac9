"""What a segment has to write again once its file could not be forced to the disk.

Linux tells once of pages that it could not write, and counts them as written from then on: the next `fsync` succeeds without them, and what
it is believed for is gone with the power. Some file systems keep such pages, others drop them. So what was not known to be on the disk
is read again, held against its CRCs and written again: then the next `fsync` is about it. A segment's `forced` are the bytes that are known to be
there, `doubted` is whether to force what follows them has failed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError
from ottla.storage.batches.scan import SCAN_BLOCK, Window, header_at
from ottla.storage.batches.sound_walk import Bounds, Found, Unsound, checked_walk

if TYPE_CHECKING:
    from ottla.storage.segments.segment import Segment


def force(segment: Segment) -> None:
    """Force the batches to the disk, and note how far; where that fails they are doubted."""
    file, size, segment.doubted = segment.file, segment.size, True  # held, so that no release closes it meanwhile
    os.fsync(file.fileno())
    segment.forced, segment.doubted = size, False


def unforced_batches(segment: Segment) -> Iterator[tuple[int, bytes]]:
    """Positions and bytes of the batches that were never forced; OSError where the system has dropped one."""
    file, position, end = segment.file, segment.forced, segment.size
    if position == end:
        return
    try:
        first = header_at(Window(file, end, SCAN_BLOCK), position, end)
        for found in checked_walk(file, position, end, first.base_offset, Bounds(segment.below)):
            if isinstance(found, Unsound):
                raise CorruptRecordError(f"the batch at position {found.position} is damaged")
            assert isinstance(found, Found)  # nobody asked for runs
            yield found.position, os.pread(file.fileno(), found.header.size_bytes, found.position)
    except CorruptRecordError as error:
        raise OSError(errno.EIO, f"what could not be written is lost: {error}") from None
