"""The offsets that a repair removed from the log, and in which a transaction may have ended: the file `lost-offsets` next to the log.

    batch │ (nothing: the bytes are in a file of their own) │ batch

Compaction leaves the same gaps, so the log itself does not show the difference. A replay of transactions treats such a range as if
the damage were still there, because a repair does not make the end of a transaction known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.storage.batches.verified_walk import Unsound, VerifiedBatch
from ottla.storage.files.checkpoint import read_numbers, write_rows
from ottla.storage.segments.segment import Segment

FILE_NAME = "lost-offsets"
LOG = logging.getLogger(__name__)


class LostOffsets(NamedTuple):
    """A range of offsets without any batch in the log, because a repair removed the bytes or a segment is missing."""

    first_offset: int
    next_offset: int


def read_lost(directory: Path) -> list[LostOffsets]:
    """Return the lost ranges of a log, in order; none if the file is missing or damaged."""
    try:
        return sorted(LostOffsets(*numbers) for numbers in read_numbers(directory / FILE_NAME, 2))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        LOG.warning("%s is damaged and passed over: %s", directory / FILE_NAME, error)
        return []


def add_lost(directory: Path, more: Iterable[LostOffsets]) -> None:
    """Add lost ranges to the file, which is forced to the disk."""
    write_rows(directory / FILE_NAME, sorted({*read_lost(directory), *more}))


def drop_lost(directory: Path, offset: int) -> None:
    """Remove the lost ranges that end after an offset, before the log is continued from there."""
    known = read_lost(directory)
    kept = [each for each in known if each.next_offset <= offset]
    if kept != known:
        write_rows(directory / FILE_NAME, kept)


def missing_in(segments: Iterable[Segment]) -> list[LostOffsets]:
    """Return the lost ranges of segments with missing files."""
    return [LostOffsets(each.offset, each.next_offset) for segment in segments for each in segment.ranges.missing]


def lost_between(lost: Sequence[LostOffsets], begin: int, end: int) -> Iterator[Unsound]:
    """Yield the lost ranges between two offsets."""
    for first, following in lost:
        if begin <= first and following <= end:
            yield Unsound(0, 0, first, following, "nothing of it is there")


def insert_lost(
    batches: Iterable[VerifiedBatch | Unsound], lost: Sequence[LostOffsets], begin: int, end: int
) -> Iterator[VerifiedBatch | Unsound]:
    """Yield the batches between two offsets, and the lost ranges in the gaps between them."""
    for found in batches:
        first, following = (
            (found.first_offset, found.next_offset)
            if isinstance(found, Unsound)
            else (found.header.base_offset, found.header.next_offset)
        )
        yield from lost_between(lost, begin, first)
        yield found
        begin = following
    yield from lost_between(lost, begin, end)
