"""Finding the producers of a log that is opened: from the latest snapshot, and the batches behind it.

After a clean shutdown the snapshot is that of the log's end. After a crash the snapshots above the recovery point, and
the transaction indexes from there on, may lack what the disk had not yet: both are made anew from the batches.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.records.batch import BatchHeader
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.batch_scan import scan
from ottla.storage.producer_snapshot import read_snapshot, snapshot_offsets, snapshot_path, write_snapshot
from ottla.storage.producer_state import AbortedTransaction, ProducerState
from ottla.storage.segment import Segment

LOG = logging.getLogger(__name__)
HEADERS_BLOCK = 4096
"""Read at once: the records between the headers are of no interest."""


def recover_producers(
    directory: Path, segments: Sequence[Segment], end_offset: int, unsure_from: int | None, now_ms: int
) -> tuple[ProducerState, int]:
    """The state at `end_offset`, and the offset of the latest snapshot that tells it.

    `unsure_from` is the base offset of the first segment that a crash may have left incomplete, None after a clean
    shutdown.
    """
    limit = end_offset if unsure_from is None else unsure_from
    state, start = restore(directory, limit, now_ms)
    remove_strays(directory, {segment.base_offset for segment in segments} | {start}, limit)
    latest = start
    for segment in segments_from(segments, start):
        unsure = unsure_from is not None and segment.base_offset >= unsure_from
        if unsure:
            segment.transactions.clear()
            if segment.base_offset > latest:
                latest = segment.base_offset
                write_snapshot(directory, latest, state.entries.values())
        for aborted in replay(segment, start, state, now_ms):
            if unsure:
                segment.transactions.append(aborted)
                segment.changed = True
    return state, latest


def rebuild_transactions(directory: Path, segments: Sequence[Segment], number: int, now_ms: int) -> None:
    """Make the transaction index of a segment anew, whose file is damaged."""
    segment = segments[number]
    LOG.warning("%s is damaged and made anew from the log", segment.beside(".txnindex"))
    segment.transactions.clear()
    state, start = restore(directory, segment.base_offset, now_ms)
    for each in segments_from(segments[: number + 1], start):
        for aborted in replay(each, start, state, now_ms):
            if each is segment:
                segment.transactions.append(aborted)
    segment.changed = True


def restore(directory: Path, limit: int, now_ms: int) -> tuple[ProducerState, int]:
    """The state of the latest good snapshot that is not above `limit`, and its offset; else nothing, at 0."""
    state = ProducerState()
    for offset in reversed(snapshot_offsets(directory)):
        entries = read_snapshot(directory, offset, now_ms) if offset <= limit else None
        if entries is not None:
            state.restore(entries)
            return state, offset
    return state, 0


def remove_strays(directory: Path, keep: set[int], limit: int) -> None:
    """Remove the snapshots that tell of what is not there any more, and those that no segment needs."""
    for offset in snapshot_offsets(directory):
        if offset > limit or offset not in keep:
            snapshot_path(directory, offset).unlink(missing_ok=True)


def segments_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """The one that holds `offset`, and those behind it."""
    return segments[max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0) :]


def replay(segment: Segment, from_offset: int, state: ProducerState, now_ms: int) -> Iterator[AbortedTransaction]:
    """Account for the segment's batches; each transaction that they abort. What lies behind damage is left out."""
    try:
        for position, header in headers(segment, from_offset):
            aborted = state.add(header, marker_at(segment, position, header), now_ms)
            if aborted is not None:
                yield aborted
    except CorruptRecordError as error:
        LOG.warning("%s: producers behind the damage are not known: %s", segment.path, error)


def headers(segment: Segment, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch of a producer with an id, from an offset on."""
    start = segment.position_of(from_offset) if from_offset > segment.base_offset else 0
    for position, header in scan(segment.file, start, segment.size, block_bytes=HEADERS_BLOCK):
        if header.producer_id >= 0:
            yield position, header


def marker_at(segment: Segment, position: int, header: BatchHeader) -> EndMarker | None:
    """The end of a transaction, where the batch is one."""
    return decode_end_marker(segment.batch(position, header), 0, header) if header.is_control else None
