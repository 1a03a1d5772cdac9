"""Compare the leader epochs of a file with the batches, and derive them from the batches if they differ.

Epochs do not decrease along a log, so that few headers are enough: those around each start, and those of the last segment.
Works on headers; OSError is raised if the disk fails.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records.batch import BatchHeader
from ottla.storage.batches.scan import scan
from ottla.storage.segments.segment import Segment

Entries = list[tuple[int, int]]
"""Epochs and the offsets at which they began."""
NONE = -1
"""The epoch of batches that have none."""


class Led(NamedTuple):
    """Consecutive batches with the same leader epoch."""

    epoch: int
    first_offset: int
    last_offset: int


def group_by_epoch(led: list[Led], header: BatchHeader) -> None:
    """Add a batch to the last group if it has the same epoch, else start a new group."""
    last = led[-1] if led else None
    if last is not None and last.epoch == header.leader_epoch:
        led[-1] = last._replace(last_offset=header.last_offset)
    else:
        led.append(Led(header.leader_epoch, header.base_offset, header.last_offset))


def drop_decreasing(led: Sequence[Led]) -> list[Led]:
    """Return the entries with epochs that do not decrease; an epoch that differs from both neighbours is damaged."""
    found: list[Led] = []
    for number, each in enumerate(led):
        before = found[-1].epoch if found else -1
        after = led[number + 1].epoch if number + 1 < len(led) else each.epoch
        if before <= each.epoch and not before <= after < each.epoch:
            found.append(each)
    return found


def verify_epochs(segments: Sequence[Segment], entries: Entries) -> Entries:
    """Return the entries of the file if the batches confirm them, else the entries that the batches give."""
    full = [segment for segment in segments if segment.size]
    if not full:
        return entries
    return entries if entries and is_confirmed(full, entries) else read_epochs(full)


def is_confirmed(segments: Sequence[Segment], entries: Entries) -> bool:
    """Return True if each entry matches the batch at its start offset and no batch before."""
    if not all(one < other and start < following for (one, start), (other, following) in pairwise(entries)):
        return False
    first = segments[0].base_offset
    for epoch, start in entries:
        header = find_header(segments, max(start, first))
        if header is not None and header.leader_epoch != find_epoch(entries, header):
            return False
        if start > first:
            before = find_header(segments, start - 1)  # None if the log ends before that offset
            if before is None or (before.leader_epoch >= epoch and before.base_offset < start):
                return False
    last = find_header(segments, segments[-1].base_offset)
    return entries[0][1] <= find_first_offset(segments) and (last is None or last.leader_epoch <= entries[-1][0])


def find_first_offset(segments: Sequence[Segment]) -> int:
    """Return the offset of the first batch. In a compacted log it may be above the base offset of the first segment."""
    header = find_header(segments, segments[0].base_offset)
    return segments[0].base_offset if header is None else header.base_offset


def find_epoch(entries: Entries, header: BatchHeader) -> int | None:
    """Return the epoch of a batch by the entries; None if it spans two.

    The epoch that starts at an offset may have no batch left, because of retention or compaction.
    """
    first, last = (
        bisect_right(entries, offset, key=itemgetter(1)) for offset in (header.base_offset, header.last_offset)
    )
    return entries[first - 1][0] if first and first == last else None


def find_header(segments: Sequence[Segment], offset: int) -> BatchHeader | None:
    """Return the header of the first batch that ends at or after an offset; None if there is none, or if it is damaged."""
    number = max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)
    for segment in segments[number:]:
        try:
            start = segment.position_of(offset) if offset > segment.base_offset else 0
            if start < segment.size:
                return next(scan(segment.file, start, segment.size, block_bytes=0))[1]
        except CorruptRecordError:
            return None
    return None


def read_epochs(segments: Sequence[Segment]) -> Entries:
    """Return the epochs of the batches. An epoch that is higher than those after it is ignored: its header is damaged."""
    entries: Entries = []
    for number, segment in enumerate(segments):
        following = find_header(segments, segments[number + 1].base_offset) if number + 1 < len(segments) else None
        for header, after in with_next(segment, following):
            later = header.leader_epoch > (entries[-1][0] if entries else NONE)
            if later and (after is None or after.leader_epoch >= header.leader_epoch):
                entries.append((header.leader_epoch, header.base_offset))
    return entries


def with_next(segment: Segment, following: BatchHeader | None) -> Iterator[tuple[BatchHeader, BatchHeader | None]]:
    """Yield each verified header of a segment with the next one. `following` is the next one of the last."""
    before = None
    for _, header in segment.batches():
        if before is not None:
            yield before, header
        before = header
    if before is not None:
        yield before, following
