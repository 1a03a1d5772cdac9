"""Damage in a log, for those who read it: the first behind an offset, and what to tell of it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ottla.storage.batches.damage import Damage, OutOfServiceError, UnsureEnd, remedy, survey
from ottla.storage.batches.sound_walk import Bounds
from ottla.storage.producers.producer_state import AbortedTransaction

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

SMALL_BYTES = 64 * 1024 * 1024
"""A segment up to this size is looked at from its beginning, a larger one from where its index says."""


def find_damage(log: Log, offset: int) -> Damage | None:
    """The first damage that whoever reads on from `offset` meets; None where all is whole from there on."""
    first = max(bisect_right(log.bases, offset) - 1, 0)
    for number, segment in enumerate(log.segments[first:]):
        bounds = Bounds(min(segment.below, log.end_offset), segment.epochs())
        start = 0 if segment.size <= SMALL_BYTES or number else segment.entry_before(offset)[1]
        for found in survey(segment.file, segment.path, segment.size, segment.base_offset, bounds, start):
            if isinstance(found, Damage) and (found.next_offset > offset or not found.size_bytes):
                return found
    return None


def unsure_end(log: Log, unsure: AbortedTransaction) -> UnsureEnd:
    """What to tell of a transaction that may have ended in damage."""
    segment = log.segments[max(bisect_right(log.bases, unsure.last_offset) - 1, 0)]
    damage = segment.ground.damaged(unsure.last_offset)
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
