"""Damage in a log, for those who read it: the first behind an offset, and what to tell of it."""

from __future__ import annotations

import logging
import os
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ottla.storage.batches.damage import Damage, OutOfServiceError, UnsureEnd, remedy, survey
from ottla.storage.batches.sound_walk import Bounds
from ottla.storage.producers.producer_state import AbortedTransaction
from ottla.storage.segments.gaps import unsound_behind
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_list import SegmentList
from ottla.storage.segments.succession import compare, note, row_of

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

LOG = logging.getLogger(__name__)
SMALL_BYTES = 64 * 1024 * 1024
"""A segment up to this size is looked at from its beginning, a larger one from where its index says."""


def note_missing(segments: SegmentList, found: Mapping[int, os.stat_result], outlook: str) -> None:
    """Have the segments of a log that is opened know which are gone from between them, and which must be noted."""
    missing, unnoted = compare(segments.directory, found)
    unknown = set(unnoted)
    segments.unnoted = deque(each for each in segments.segments if each.base_offset in unknown)
    for each in missing:
        segment = segments.segments[bisect_left(segments.bases, each.base_offset)]
        unsound = unsound_behind(segment.path, segment.size, each)
        if unsound is None:
            segments.unnoted.append(segment)
            continue
        damage = segment.ranges.add_missing(unsound)
        segment.transactions.doubt()
        LOG.error("%s; %s", damage, outlook)


def note_gap(segment: Segment, ended: int) -> None:
    """Once another follows a segment at a later offset than that at which it ended: whether its end is gone, as later starts are to say
    until a person goes on without it, or a leader has compacted away what lay between, as no crash is to be blamed for.
    """
    due = segment.ranges.expected_next_base(segment.size, segment.next_base)
    if min(due, ended) < segment.next_base:
        note(segment.directory, [row_of(segment.path, due)])


def outlook(log: Log) -> str:
    """What becomes of a log in which something is missing, and what a person can do."""
    if log.replicated:
        return "the copy is made whole from another broker's, if one has all of it"
    return f"readers who come there get an error; {remedy(log.directory)}"


def known_damages(log: Log) -> Iterator[Damage]:
    """What has been seen so far of what is served, by offset; nothing is looked for."""
    if log.lost is not None and log.start_offset < log.bases[0]:
        yield log.lost
    for segment in log.segments:
        for damage in tuple(segment.ranges.damages):
            if damage.offset >= log.start_offset or damage.next_offset > log.start_offset:
                yield damage


def find_damage(log: Log, offset: int) -> Damage | None:
    """The first damage that whoever reads on from `offset` meets, which is known from now on; None where all is whole from there on."""
    first = max(bisect_right(log.bases, offset) - 1, 0)
    for number, segment in enumerate(log.segments[first:]):
        bounds = Bounds(min(segment.next_base, log.end_offset), segment.epochs())
        start = 0 if segment.size <= SMALL_BYTES or number else segment.entry_before(offset)[1]
        for found in survey(segment.file, segment.path, segment.size, segment.base_offset, bounds, start):
            if isinstance(found, Damage) and (found.next_offset > offset or not found.size_bytes):
                segment.ranges.add_checksum_damage(found)
                return found
        for missing in segment.ranges.missing:
            if missing.next_offset > offset:
                return missing
    return None


def fallen_short(log: Log, committed: int) -> Damage | None:
    """What is missing behind the end of a log that was just opened: what had to be cut off, or is torn, or was committed once."""
    end = log.end_offset if log.torn_at is None else log.torn_at
    if log.recovery is None and end >= committed and log.torn_at is None:
        return None
    last = log.segments[-1]
    return Damage(
        last.path, last.size, 0, end, max(end + 1, committed), f"a crash has taken what it had from offset {end} on"
    )


def unsure_end(log: Log, unsure: AbortedTransaction) -> UnsureEnd:
    """What to tell of a transaction that may have ended in damage."""
    segment = log.segments[max(bisect_right(log.bases, unsure.last_offset) - 1, 0)]
    damage = segment.ranges.damage_at(unsure.last_offset)
    position, size = (damage.position, damage.size_bytes) if damage is not None else (0, 0)
    return UnsureEnd(
        segment.path,
        position,
        size,
        unsure.first_offset,
        unsure.last_offset + 1,
        "the log is damaged",
        unsure.producer_id,
    )


def out_of_service(log: Log, offset: int, error: Exception) -> OutOfServiceError:
    """The sentence about a log that must be read whole, and cannot be from `offset` on."""
    damage = find_damage(log, offset)
    return OutOfServiceError(f"{damage or error}; {remedy(log.directory)}")
