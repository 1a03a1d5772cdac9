"""Find gaps: offsets between two segments of a log that are in neither, because a file was lost.

Only the headers of the last batches of each segment are read, from its last index entry on. Compaction and repairs leave gaps as well.
The caller must know if the topic was ever compacted; the ranges that a repair removed are in `lost-offsets`. A gap is certainly damage
if `segment-succession` has a valid row for the segment before it, or if that segment was truncated since the row was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct, error
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.storage.batches.scan import HEAD, scan
from ottla.storage.batches.verified_walk import Unsound
from ottla.storage.files.open_file import OpenFile
from ottla.storage.files.regular_file import open_regular
from ottla.storage.segments.log_folder import LOG_NAME
from ottla.storage.segments.succession import Missing, Shortened, missing_segments

ENTRY = Struct(">ii")
"""An entry of an offset index: the relative last offset of a batch, and its position."""
BLOCK_BYTES = 8192
"""Twice the usual distance between two index entries."""


class MissingOffsets(NamedTuple):
    """A gap between two segments."""

    file: Path
    """The segment before it."""
    first_offset: int
    next_offset: int
    """The base offset of the next segment."""

    @property
    def reason(self) -> str:
        return (
            f"offsets {self.first_offset} to {self.next_offset - 1} are in no segment: the next one begins at {self.next_offset}, and "
            "only compaction leaves such gaps; readers pass over them without an error. If files were removed, restore them from a backup"
        )


def missing_offsets(folder: Path, lost: Sequence[tuple[int, int]] = ()) -> Iterator[MissingOffsets]:
    """Yield the gaps between the segments in a folder that may be in use. Known damage and the `lost` offsets of repairs are left out."""
    names, damages = os.listdir(folder), {found.next_offset for _, found in find_holes(folder)}
    paths = [folder / name for name in sorted(names) if LOG_NAME.fullmatch(name)]
    for path, behind in pairwise(paths):
        begins = int(behind.name[:20])
        if is_repaired(path.name, names) or begins in damages:
            continue
        end = end_offset_of(path)
        # Meanwhile the log may have been cut, or its oldest segments deleted.
        if end is None or any(first <= end and begins <= following for first, following in lost):
            continue
        if end < begins and behind.exists() and end_offset_of(path) == end:
            yield MissingOffsets(path, end, begins)


def find_holes(folder: Path) -> Iterator[tuple[Path, Unsound]]:
    """Yield the lost ranges of a folder, which may be in use, each with the segment before it."""
    for missing in missing_segments(folder):
        path = folder / f"{missing.base_offset:020d}.log"
        try:
            found = find_lost_offsets(path, path.stat().st_size, missing)
        except FileNotFoundError:
            continue  # It was deleted meanwhile.
        if found is not None:
            yield path, found


def find_lost_offsets(file: Path, size: int, missing: Missing | Shortened) -> Unsound | None:
    """Return the offsets that are lost after a segment as damage at its end; None if no offset is missing before the next segment.

    For a truncated segment the damage includes the bytes of an incomplete batch.
    """
    position, end = find_readable_end(file) or (size, missing.next_offset)
    if isinstance(missing, Missing):
        first = min(end, missing.first_offset) if position == size else missing.first_offset
        return Unsound(size, 0, first, missing.next_offset, missing.reason(first), at_end=True)
    if end >= missing.next_offset:
        return None
    return Unsound(position, size - position, end, missing.next_offset, missing.reason(end), at_end=True)


def is_repaired(name: str, names: list[str]) -> bool:
    """Return True if a repair set damage of this segment aside."""
    return any(each.startswith(name) and each.endswith(".damaged") for each in names)


def end_offset_of(path: Path) -> int | None:
    """Return the offset after the last batch of an intact segment; None if it cannot be found."""
    part = find_readable_end(path)
    return part[1] if part is not None and part[0] == path.stat().st_size else None


def find_readable_end(path: Path) -> tuple[int, int] | None:
    """Return the end position of the readable batches of a segment, and the offset after them; None if the disk fails."""
    try:
        file = OpenFile(path, read=True)
        size = os.fstat(file.fileno()).st_size
        position, end = find_verified_entry(file, path, size)
        for at, header in scan(file, position, size, block_bytes=BLOCK_BYTES):
            position, end = at + header.size_bytes, header.next_offset
    except OSError:
        return None
    except CorruptRecordError:
        pass
    return position, end


def find_verified_entry(file: OpenFile, path: Path, size: int) -> tuple[int, int]:
    """Return the position of a batch and its base offset, by the last index entry that agrees with a batch."""
    base_offset = int(path.name[:20])
    try:
        with open(path.with_suffix(".index"), "rb", opener=open_regular) as index:
            entries = index.seek(0, os.SEEK_END) // ENTRY.size
            index.seek(max(entries - 1, 0) * ENTRY.size)
            relative, position = ENTRY.unpack(index.read(ENTRY.size))
    except (OSError, error):  # it is missing, or empty
        return 0, base_offset
    head = os.pread(file.fileno(), HEAD.size, position) if 0 < position < size else b""
    if len(head) == HEAD.size:
        first, _, _, delta = HEAD.unpack(head)
        if first + delta == base_offset + relative:
            return position, first
    return 0, base_offset
