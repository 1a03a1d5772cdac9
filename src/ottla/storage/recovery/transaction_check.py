"""Compare the transaction index of a segment, if an earlier process wrote it, with the log.

Only headers are read while index and log agree. If they differ, damaged ranges of the log are skipped, and transactions that are open at
such a range may have ended in it. If the whole index agrees with the readable batches, it is also trusted for the damaged ranges. Otherwise the
index is rebuilt from the batches, and the end of those transactions is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import INT64_MAX
from ottla.records.control import ControlType
from ottla.storage.batches.verified_walk import Unsound, VerifiedBatch
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.producers.producer_snapshot import snapshot_offsets
from ottla.storage.producers.producer_state import AbortedTxn, ProducerStateManager
from ottla.storage.recovery.lost_offsets import insert_lost, missing_in, read_lost
from ottla.storage.recovery.producer_recovery import (
    is_readable,
    iter_headers,
    iter_headers_and_damage,
    marker_at,
    restore_snapshot,
    segments_from,
)
from ottla.storage.segments.segment import Segment

LOG = logging.getLogger(__name__)
Look = Callable[[Segment, int], Iterable[VerifiedBatch | Unsound]]


def verify_transaction_index(
    directory: Path, segments: Sequence[Segment], number: int, now_ms: int
) -> TransactionIndex:
    """Return the transaction index of a segment, rebuilt if its file does not match the log.

    The batches of the segment are read once, and only if there is a file that an earlier process wrote, or if the file is missing.
    """
    index = segments[number].transactions
    if index.believed:
        return index  # nearly always
    indexed: list[AbortedTxn] | None = None
    try:
        indexed = list(index)
    except CorruptRecordError as error:
        LOG.warning("%s; rebuilding it from the log", error)
    if not index.believed:
        true = find_true_rows(directory, segments, number, now_ms, indexed)
        if indexed is not None and indexed != true:
            LOG.warning("%s says %s, the log says %s; rebuilding it", index.path, indexed, true)
        index.set_rows(true)
        segments[number].changed = True
    return index


def find_aborted_transactions(
    directory: Path, segments: Sequence[Segment], number: int, offset: int, upper: int
) -> list[AbortedTxn]:
    """Return the aborted transactions with records from `offset`, in segment `number`, up to (not including) `upper`."""
    aborted = []
    for each in range(number, len(segments)):
        rows, complete = verify_transaction_index(directory, segments, each, 0).find_overlapping(offset, upper)
        aborted += rows
        if complete:
            break
    return aborted


def find_true_rows(
    directory: Path, segments: Sequence[Segment], number: int, now_ms: int, indexed: list[AbortedTxn] | None
) -> list[AbortedTxn]:
    """Return the aborted transactions by the log, or by the former index if damage makes them unknown."""
    by_headers = read_aborted(directory, segments, number, now_ms, iter_headers)
    if by_headers.rows == indexed:
        return indexed
    found = read_aborted(directory, segments, number, now_ms, iter_headers_and_damage)
    if indexed is None:
        return found.rows
    end = end_of(directory, segments, number)
    believed = all(each.last_offset < end for each in indexed) and is_consistent(segments, found, indexed)
    return indexed if believed else found.rows


def end_of(directory: Path, segments: Sequence[Segment], number: int) -> int:
    """Return the offset after everything in a segment, damaged and lost ranges included. Every transaction in its index ended before it."""
    segment = segments[number]
    if segment.next_base < INT64_MAX:
        return segment.next_base
    last = max((found.header.next_offset for found in iter_headers(segment, segment.base_offset)), default=0)
    damaged = [each.next_offset for each in segment.ranges.damages]
    return max([last, *damaged, *(each.next_offset for each in read_lost(directory))])


class Replayed(NamedTuple):
    """The aborted transactions by the batches of a segment and those before it."""

    rows: list[AbortedTxn]
    """The transactions that end in the segment, and those that may have ended there."""
    unsure: set[tuple[int, int]]
    """Producer and first offset of the transactions that may have ended in damage, in the segment or before it."""


def read_aborted(directory: Path, segments: Sequence[Segment], number: int, now_ms: int, look: Look) -> Replayed:
    """Read the batches of a segment, and those between it and the snapshot before it."""
    segment = segments[number]
    state, start = restore_snapshot(directory, snapshot_offsets(directory), segment.base_offset, now_ms)
    lost = sorted(
        missing_in(segments[: number + 1]) + (read_lost(directory) if look is iter_headers_and_damage else [])
    )
    found = Replayed([], set())
    for each in segments_from(segments[: number + 1], start):
        batches = insert_lost(look(each, start), lost, max(start, each.base_offset), each.next_base)
        ended = replay(batches, each, state, now_ms)
        found.unsure.update((one.producer_id, one.first_offset) for one in ended if one.is_unsure)
        found.rows.extend(ended if each is segment else ())
    return found


def is_consistent(segments: Sequence[Segment], found: Replayed, indexed: list[AbortedTxn]) -> bool:
    """Return True if the whole index agrees with the readable batches, and none of their transactions is missing in it.

    Return False if a transaction may have ended in a lost segment, because that segment's index is lost too.
    """
    gone = {each.next_offset - 1 for each in missing_in(segments)}
    if any(each.is_unsure and each.last_offset in gone for each in found.rows):
        return False
    ended = {(each.producer_id, each.last_offset): each for each in found.rows if not each.is_unsure}

    def fits(each: AbortedTxn) -> bool:
        same = ended.get((each.producer_id, each.last_offset))
        if same is None:
            return is_lost(segments, each.last_offset) or was_cleaned(segments, each)
        if same.first_offset == each.first_offset:
            return each.last_stable_offset <= same.last_stable_offset
        return (each.producer_id, each.first_offset) in found.unsure or is_lost(segments, each.first_offset)

    return ended.keys() <= {(each.producer_id, each.last_offset) for each in indexed} and all(map(fits, indexed))


def was_cleaned(segments: Sequence[Segment], aborted: AbortedTxn) -> bool:
    """Return True if compaction has removed all records of an aborted transaction and left the marker, which stays for `delete.retention.ms`."""
    for segment in segments_from(segments, aborted.first_offset):
        for found in iter_headers(segment, aborted.first_offset):
            header = found.header
            if header.base_offset > aborted.last_offset:
                return False
            if header.producer_id == aborted.producer_id and (header.is_transactional or header.is_control):
                return header.base_offset == aborted.last_offset and is_abort(segment, found)
    return False


def is_abort(segment: Segment, found: VerifiedBatch) -> bool:
    """Return True if a batch is the marker of an abort, and whole."""
    if not found.header.is_control or not is_readable(segment, *found):
        return False
    marker = marker_at(segment, *found)
    return marker is not None and marker.type == ControlType.ABORT


def is_lost(segments: Sequence[Segment], offset: int) -> bool:
    """Return True if the batch at an offset cannot be read."""
    segment = segments_from(segments, offset)[0]
    found = next(iter_headers(segment, offset), None)
    return found is None or found.header.base_offset > offset or not is_readable(segment, *found)


def replay(
    batches: Iterable[VerifiedBatch | Unsound], segment: Segment, state: ProducerStateManager, now_ms: int
) -> list[AbortedTxn]:
    """Add the batches and damages of a segment to the state. Return the transactions that were aborted, or may have been."""
    ended: list[AbortedTxn] = []
    for found in batches:
        if isinstance(found, Unsound):
            ended += state.record_lost_range(found.first_offset, found.next_offset, {})
        elif found.header.producer_id >= 0:
            aborted = state.add(found.header, marker_at(segment, *found), now_ms)
            ended += () if aborted is None else (aborted,)
    return ended
