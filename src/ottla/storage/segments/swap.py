"""Replace segments by the compacted segment that was made from them. A crash at any point leaves the old segments or the new one.

    write …cleaned ──► rename to …swap ──► delete the old ones ──► rename to the final names

The next start completes or undoes an interrupted replacement, by Kafka's rules. Files that still end with `.cleaned` were not complete:
they are deleted, and so are `.swap` files with the same or a higher base offset. Other `.swap` files replace the old segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.storage.batches.scan import scan
from ottla.storage.files.durable import sync_path
from ottla.storage.files.open_file import OpenFile
from ottla.storage.producers.producer_snapshot import snapshot_path
from ottla.storage.segments.segment import FILES, Segment

CLEANED = ".cleaned"
SWAP = ".swap"
BASE_DIGITS = 20


def mark_complete(segment: Segment) -> None:
    """Mark a segment that is complete on the disk, so that a start after a crash completes the exchange."""
    segment.rename(SWAP)
    sync_path(segment.directory)


class SegmentSwap:
    """The exchange of a compacted segment for those with these base offsets, which are no longer opened by name."""

    def __init__(self, segment: Segment, bases: Sequence[int]) -> None:
        self._segment = segment
        self._bases = bases
        self._cleared = False
        """True if the old files are deleted: files with their names are new."""

    def carry_through(self) -> None:
        """Complete the exchange. If that fails it may be called again."""
        if not self._cleared:
            self._clear()
            self._cleared = True
        self._segment.rename("")
        sync_path(self._segment.directory)

    def _clear(self) -> None:
        segment = self._segment
        for base in self._bases:
            for kind in FILES:
                # A file with a `.swap` file is replaced by the rename, so that its name always exists.
                if base != segment.base_offset or not segment.file_path(kind).exists():
                    (segment.directory / f"{base:020d}{kind}").unlink(missing_ok=True)
            if base != segment.base_offset:
                snapshot_path(segment.directory, base).unlink(missing_ok=True)


def discard_swap(directory: Path) -> None:
    """Delete the files of a compacted segment before its exchange has started."""
    for ending in (SWAP, CLEANED):
        for path in directory.glob(f"*{ending}"):
            path.unlink(missing_ok=True)


def recover_swap(directory: Path, names: Iterable[str]) -> bool:
    """Undo or complete a replacement that a crash interrupted. Return True if there was one. `names` are the folder's files."""
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    if not cleaned and not swaps:
        return False
    first_incomplete = min(map(parse_base_offset, cleaned), default=None)
    doomed = [name for name in swaps if first_incomplete is not None and parse_base_offset(name) >= first_incomplete]
    for name in (*doomed, *cleaned):
        (directory / name).unlink(missing_ok=True)
    offered = sorted(set(swaps) - set(doomed))
    for name in offered:
        if name.endswith(f".log{SWAP}"):
            clear_place(directory, parse_base_offset(name), names)
    for name in offered:
        (directory / name).rename(directory / name.removesuffix(SWAP))
    sync_path(directory)
    return True


def clear_place(directory: Path, base: int, names: Iterable[str]) -> None:
    """Delete the segments that a compacted one replaces: those below the end of its last batch. Emptied segments after that end may stay."""
    end = find_next_offset(directory / f"{base:020d}.log{SWAP}", base)
    for name in names:
        if name.endswith(FILES) and (parse_base_offset(name) == base or base <= parse_base_offset(name) < end):
            (directory / name).unlink(missing_ok=True)


def find_next_offset(path: Path, base: int) -> int:
    """Return the offset after the last whole batch of a file."""
    end = base
    try:
        for _, header in scan(OpenFile(path), 0, path.stat().st_size):
            end = header.next_offset
    except CorruptRecordError:
        pass  # A reader of the segment reports the damage.
    return end


def parse_base_offset(name: str) -> int:
    """Return the base offset in the name of a segment's file; -1 for other files."""
    digits = name[:BASE_DIGITS]
    return int(digits) if len(digits) == BASE_DIGITS and digits.isdigit() else -1
