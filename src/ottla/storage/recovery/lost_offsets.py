"""Offsets of bytes that a repair set aside, and in which a transaction may have ended: `lost-offsets` next to the log.

    batch │ (nothing: the bytes are in a file of their own) │ batch

Compaction leaves the same gaps, so the log itself does not show the difference. A replay of transactions treats such a range as if
the damage were still there, because a repair does not make the end of a transaction known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.storage.batches.verified_walk import Found, Unsound
from ottla.storage.files.checkpoint import read_numbers, write_rows
from ottla.storage.segments.segment import Segment

FILE_NAME = "lost-offsets"
LOG = logging.getLogger(__name__)


class Lost(NamedTuple):
    """A stretch of a log of which nothing is there."""

    first_offset: int
    next_offset: int


def read_lost(directory: Path) -> list[Lost]:
    """The stretches of a log, in order; none where there is no file, or where it is damaged."""
    try:
        return sorted(Lost(*numbers) for numbers in read_numbers(directory / FILE_NAME, 2))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        LOG.warning("%s is damaged and passed over: %s", directory / FILE_NAME, error)
        return []


def add_lost(directory: Path, more: Iterable[Lost]) -> None:
    """Keep further stretches; they are on the disk when this returns."""
    write_rows(directory / FILE_NAME, sorted({*read_lost(directory), *more}))


def drop_lost(directory: Path, offset: int) -> None:
    """Before other batches are appended from an offset on: remove the lost offsets from there on."""
    known = read_lost(directory)
    kept = [each for each in known if each.next_offset <= offset]
    if kept != known:
        write_rows(directory / FILE_NAME, kept)


def missing_in(segments: Iterable[Segment]) -> list[Lost]:
    """The stretches between segments of which the files have gone."""
    return [Lost(each.offset, each.next_offset) for segment in segments for each in segment.ranges.missing]


def between(lost: Sequence[Lost], begin: int, end: int) -> Iterator[Unsound]:
    """The stretches in a gap between two offsets."""
    for first, following in lost:
        if begin <= first and following <= end:
            yield Unsound(0, 0, first, following, "nothing of it is there")


def insert_lost(
    batches: Iterable[Found | Unsound], lost: Sequence[Lost], begin: int, end: int
) -> Iterator[Found | Unsound]:
    """Yield the batches between two offsets, and the lost ranges in the gaps between them."""
    for found in batches:
        first, following = (
            (found.first_offset, found.next_offset)
            if isinstance(found, Unsound)
            else (found.header.base_offset, found.header.next_offset)
        )
        yield from between(lost, begin, first)
        yield found
        begin = following
    yield from between(lost, begin, end)
