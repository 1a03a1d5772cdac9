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
SMALL_BYTES = 65_536
"""So little is read in one go."""


class ProducerRecovery:
    """Takes up the batches of a log that is opened, each once and in their order, from the latest snapshot on."""

    def __init__(self, directory: Path, bases: Sequence[int], limit: int, now_ms: int, *, indexing: bool) -> None:
        """Snapshots above the offset `limit` are not to be trusted and go, as do those that no segment needs.

        With `indexing` the transaction indexes are given what they lack.
        """
        self.state, self.start = restore(directory, limit, now_ms)
        self.latest = self.start
        """The offset of the latest snapshot."""
        self._next_offset = self.start
        self._directory = directory
        self._now_ms = now_ms
        self._indexing = indexing
        remove_strays(directory, {*bases, self.start}, limit)

    def walk(self, segments: Sequence[Segment]) -> None:
        """Take the batches of segments as far as they were noted, by their headers alone."""
        for segment in segments_from(segments, self._next_offset):
            try:
                for position, header in headers(segment, self._next_offset):
                    self.take(segment, position, header)
            except CorruptRecordError as error:
                LOG.warning("%s: producers behind the damage are not known: %s", segment.path, error)

    def begin(self, segment: Segment) -> None:
        """Take up a segment of which nothing is known to be on the disk, but for the log itself."""
        segment.transactions.clear()
        if segment.base_offset > self.latest:
            self.latest = segment.base_offset
            write_snapshot(self._directory, self.latest, self.state.entries.values())

    def take(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Account for a batch, unless it was before."""
        if header.base_offset < self._next_offset:
            return
        self._next_offset = header.next_offset
        if header.producer_id < 0:
            return
        aborted = self.state.add(header, marker_at(segment, position, header), self._now_ms)
        if aborted is not None and self._indexing and aborted.last_offset > segment.transactions.end:
            segment.transactions.append(aborted)
            segment.changed = True


def recover_producers(directory: Path, segments: Sequence[Segment], end_offset: int, now_ms: int) -> ProducerRecovery:
    """What is known of producers where the segments and their transaction indexes are as they should be."""
    bases = [segment.base_offset for segment in segments]
    found = ProducerRecovery(directory, bases, end_offset, now_ms, indexing=False)
    if found.start < end_offset:
        found.walk(segments)
    return found


def begin_recovery(
    directory: Path, segments: Sequence[Segment], unsure: int, point: int, now_ms: int
) -> ProducerRecovery:
    """The same where segment number `unsure` and those behind it may lack what lies above the recovery point.

    Has taken what lies before them; they are to be taken as they are checked.
    """
    first = segments[unsure]
    limit = point
    try:
        first.transactions.truncate(point)
    except CorruptRecordError:
        limit = min(point, first.base_offset)
        first.transactions.clear()
    found = ProducerRecovery(directory, [segment.base_offset for segment in segments], limit, now_ms, indexing=True)
    if found.start < first.base_offset:
        found.walk(segments[:unsure])
    return found


def rebuild_transactions(directory: Path, segments: Sequence[Segment], number: int, now_ms: int) -> None:
    """Make the transaction index of a segment anew, whose file is not to be trusted."""
    segment = segments[number]
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
            if header.producer_id < 0:
                continue
            aborted = state.add(header, marker_at(segment, position, header), now_ms)
            if aborted is not None:
                yield aborted
    except CorruptRecordError as error:
        LOG.warning("%s: producers behind the damage are not known: %s", segment.path, error)


def headers(segment: Segment, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from an offset on."""
    start = segment.position_of(from_offset) if from_offset > segment.base_offset else 0
    block_bytes = SMALL_BYTES if segment.size - start <= SMALL_BYTES else HEADERS_BLOCK
    yield from scan(segment.file, start, segment.size, block_bytes=block_bytes)


def marker_at(segment: Segment, position: int, header: BatchHeader) -> EndMarker | None:
    """The end of a transaction, where the batch is one."""
    return decode_end_marker(segment.batch(position, header), 0, header) if header.is_control else None
