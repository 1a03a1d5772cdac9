"""Compare the transaction index of a segment, if an earlier process wrote it, with the log.

Headers are enough while both agree. If they do not, damaged ranges of the log are skipped, and transactions that are open there may
have ended there. If the whole index agrees with the readable batches, it is trusted for the rest; otherwise the batches count, and such
transactions have an unknown end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import INT64_MAX
from ottla.records.control import ControlType
from ottla.storage.batches.verified_walk import Found, Unsound
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.producers.producer_snapshot import snapshot_offsets
from ottla.storage.producers.producer_state import AbortedTransaction, ProducerState
from ottla.storage.recovery.lost_offsets import insert_lost, missing_in, read_lost
from ottla.storage.recovery.producer_recovery import (
    headers,
    is_readable,
    marker_at,
    restore,
    segments_from,
    surely,
)
from ottla.storage.segments.segment import Segment

LOG = logging.getLogger(__name__)
Look = Callable[[Segment, int], Iterable[Found | Unsound]]


def verify_transaction_index(
    directory: Path, segments: Sequence[Segment], number: int, now_ms: int
) -> TransactionIndex:
    """Return the transaction index of a segment, rebuilt if its file does not match the log.

    The batches of the segment are read once, and only if there is a file that an earlier process wrote, or if the file is missing.
    """
    index = segments[number].transactions
    if index.believed:
        return index  # as nearly each read finds it
    indexed: list[AbortedTransaction] | None = None
    try:
        indexed = list(index)
    except CorruptRecordError as error:
        LOG.warning("%s; rebuilding it from the log", error)
    if not index.believed:
        true = find_true_rows(directory, segments, number, now_ms, indexed)
        if indexed is not None and indexed != true:
            LOG.warning("%s says %s, the log says %s; rebuilding it", index.path, indexed, true)
        index.confirm(true)
        segments[number].changed = True
    return index


def find_aborted_transactions(
    directory: Path, segments: Sequence[Segment], number: int, offset: int, upper: int
) -> list[AbortedTransaction]:
    """Return the aborted transactions with records from `offset`, in segment `number`, up to (not including) `upper`."""
    aborted = []
    for each in range(number, len(segments)):
        rows, complete = verify_transaction_index(directory, segments, each, 0).overlapping(offset, upper)
        aborted += rows
        if complete:
            break
    return aborted


def find_true_rows(
    directory: Path, segments: Sequence[Segment], number: int, now_ms: int, indexed: list[AbortedTransaction] | None
) -> list[AbortedTransaction]:
    """Return the aborted transactions by the log, or by the former index if damage makes them unknown."""
    by_headers = read_aborted(directory, segments, number, now_ms, headers)
    if by_headers.rows == indexed:
        return indexed
    found = read_aborted(directory, segments, number, now_ms, surely)
    if indexed is None:
        return found.rows
    end = end_of(directory, segments, number)
    believed = all(each.last_offset < end for each in indexed) and is_consistent(segments, found, indexed)
    return indexed if believed else found.rows


def end_of(directory: Path, segments: Sequence[Segment], number: int) -> int:
    """An offset that nothing in a segment reaches, be it damaged or lost: transactions that its index has ended before."""
    segment = segments[number]
    if segment.next_base < INT64_MAX:
        return segment.next_base
    last = max((found.header.next_offset for found in headers(segment, segment.base_offset)), default=0)
    damaged = [each.next_offset for each in segment.ranges.damages]
    return max([last, *damaged, *(each.next_offset for each in read_lost(directory))])


class Replayed(NamedTuple):
    """The aborted transactions by the batches of a segment and those before it."""

    rows: list[AbortedTransaction]
    """The transactions that end in the segment, and those that may have ended there."""
    unsure: set[tuple[int, int]]
    """Producer and first offset of those that may have ended in it or before it."""


def read_aborted(directory: Path, segments: Sequence[Segment], number: int, now_ms: int, look: Look) -> Replayed:
    """Read the batches of a segment, and those between it and the snapshot before it."""
    segment = segments[number]
    state, start = restore(directory, snapshot_offsets(directory), segment.base_offset, now_ms)
    lost = sorted(missing_in(segments[: number + 1]) + (read_lost(directory) if look is surely else []))
    found = Replayed([], set())
    for each in segments_from(segments[: number + 1], start):
        batches = insert_lost(look(each, start), lost, max(start, each.base_offset), each.next_base)
        ended = replay(batches, each, state, now_ms)
        found.unsure.update((one.producer_id, one.first_offset) for one in ended if one.is_unsure)
        found.rows.extend(ended if each is segment else ())
    return found


def is_consistent(segments: Sequence[Segment], found: Replayed, indexed: list[AbortedTransaction]) -> bool:
    """True if the whole index agrees with the readable batches, and none of their transactions is missing in it.

    There is no index for transactions that may have ended in a lost segment.
    """
    gone = {each.next_offset - 1 for each in missing_in(segments)}
    if any(each.is_unsure and each.last_offset in gone for each in found.rows):
        return False
    ended = {(each.producer_id, each.last_offset): each for each in found.rows if not each.is_unsure}

    def fits(each: AbortedTransaction) -> bool:
        same = ended.get((each.producer_id, each.last_offset))
        if same is None:
            return is_lost(segments, each.last_offset) or was_cleaned(segments, each)
        if same.first_offset == each.first_offset:
            return each.last_stable_offset <= same.last_stable_offset
        return (each.producer_id, each.first_offset) in found.unsure or is_lost(segments, each.first_offset)

    return ended.keys() <= {(each.producer_id, each.last_offset) for each in indexed} and all(map(fits, indexed))


def was_cleaned(segments: Sequence[Segment], aborted: AbortedTransaction) -> bool:
    """True if compaction has removed all records of an aborted transaction and left the marker, which stays for `delete.retention.ms`."""
    for segment in segments_from(segments, aborted.first_offset):
        for found in headers(segment, aborted.first_offset):
            header = found.header
            if header.base_offset > aborted.last_offset:
                return False
            if header.producer_id == aborted.producer_id and (header.is_transactional or header.is_control):
                return header.base_offset == aborted.last_offset and is_abort(segment, found)
    return False


def is_abort(segment: Segment, found: Found) -> bool:
    """True if a batch is the marker of an abort, and whole."""
    if not found.header.is_control or not is_readable(segment, *found):
        return False
    marker = marker_at(segment, *found)
    return marker is not None and marker.type == ControlType.ABORT


def is_lost(segments: Sequence[Segment], offset: int) -> bool:
    """True if the batch at an offset cannot be read."""
    segment = segments_from(segments, offset)[0]
    found = next(headers(segment, offset), None)
    return found is None or found.header.base_offset > offset or not is_readable(segment, *found)


def replay(
    batches: Iterable[Found | Unsound], segment: Segment, state: ProducerState, now_ms: int
) -> list[AbortedTransaction]:
    """Account for what was found in a segment; the transactions that ended by an abort, or may have."""
    ended: list[AbortedTransaction] = []
    for found in batches:
        if isinstance(found, Unsound):
            ended += state.lose(found.first_offset, found.next_offset, {})
        elif found.header.producer_id >= 0:
            aborted = state.add(found.header, marker_at(segment, *found), now_ms)
            ended += () if aborted is None else (aborted,)
    return ended
