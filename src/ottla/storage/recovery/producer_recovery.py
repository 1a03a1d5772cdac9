"""Recover the producers of a log that is opened, from the latest snapshot and the batches after it.

After a clean shutdown the latest snapshot is that of the log's end. After a crash a snapshot above the recovery point may describe batches
that were lost, and is deleted. The rows of the transaction indexes at or above the point are dropped. Both are rebuilt from the batches.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.records.batch import BatchHeader, verify
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.batches.batch_run import BatchRun
from ottla.storage.batches.verified_walk import Unsound, VerifiedBatch
from ottla.storage.producers.producer_entry import NONE
from ottla.storage.producers.producer_snapshot import read_snapshot, snapshot_offsets, snapshot_path, write_snapshot
from ottla.storage.producers.producer_state import AbortedTxn, ProducerStateManager
from ottla.storage.recovery.lost_offsets import lost_between, missing_in, read_lost
from ottla.storage.segments.segment import Segment

LOG = logging.getLogger(__name__)
IndexedAborts = dict[tuple[int, int], AbortedTxn]
"""Aborted transactions by producer and first offset."""
END_MARKER_BYTES = 78
"""Size of a batch that ends a transaction."""


class ProducerRecovery:
    """Replays the batches of a log that is opened, each once and in their order, from the latest snapshot on."""

    def __init__(
        self, directory: Path, segments: Sequence[Segment], limit: int, now_ms: int, *, indexing: bool
    ) -> None:
        """Load the latest snapshot at or below the offset `limit`. Delete the snapshots above it, and those that no segment needs.

        With `indexing` the missing rows are added to the transaction indexes.
        """
        snapshots = snapshot_offsets(directory)
        self.state, self.start = restore_snapshot(directory, snapshots, limit, now_ms)
        self.latest = self.start
        """The offset of the latest snapshot."""
        self.indexed: Callable[[], IndexedAborts] = dict
        """Returns the entries of the transaction indexes: the only source for damaged ranges of the log."""
        self._next_offset = self.start
        self._lost = sorted(read_lost(directory) + missing_in(segments))
        self._directory = directory
        self._now_ms = now_ms
        self._indexing = indexing
        remove_strays(directory, snapshots, {self.start, *(each.base_offset for each in segments)}, limit)

    def walk(self, segments: Sequence[Segment]) -> None:
        """Replay the batches of segments. Only batches that may be part of a transaction are read whole; of others only the header."""
        for segment in segments_from(segments, self._next_offset):
            self.walk_below(segment, segment.next_base)
            self.end_segment(segment)

    def walk_below(self, segment: Segment, offset: int) -> None:
        """Replay the indexed batches of one segment, below an offset; the caller replays the batches from that offset on later."""
        for found in iter_headers_and_damage(segment, self._next_offset, offset):
            if isinstance(found, Unsound):
                self.record_lost_range(segment, found)
            else:
                self.replay(segment, *found)

    def begin_segment(self, segment: Segment) -> None:
        """Start a segment above the recovery point: clear its transaction index and write the producer snapshot of its start."""
        segment.transactions.clear()
        if segment.base_offset > self.latest:
            self.latest = segment.base_offset
            write_snapshot(self._directory, self.latest, self.state.entries.values())

    def replay(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Add a batch to the producer state, unless it was added before."""
        if header.base_offset < self._next_offset:
            return
        self._pass_lost(segment, header.base_offset)
        self._next_offset = header.next_offset
        if header.producer_id < 0:
            return
        aborted = self.state.add(header, marker_at(segment, position, header), self._now_ms)
        if aborted is not None and self._indexing and aborted.last_offset > segment.transactions.end:
            segment.transactions.append(aborted)
            segment.changed = True

    def end_segment(self, segment: Segment) -> None:
        """Finish a segment: record the lost ranges between its last batch and the next segment."""
        self._pass_lost(segment, segment.next_base)

    def _pass_lost(self, segment: Segment, offset: int) -> None:
        """Record the ranges before an offset that a repair removed, or that were in missing segments."""
        for found in lost_between(self._lost, self._next_offset, offset) if self._lost else ():
            self.record_lost_range(segment, found)

    @property
    def next_offset(self) -> int:
        """The offset of the next batch to replay."""
        return self._next_offset

    def replay_run(self, run: BatchRun) -> None:
        """Account for a run of batches, which are part of no transaction."""
        for header in run.producers:
            self.state.add(header, None, self._now_ms)
        self._next_offset = max(self._next_offset, run.next_offset)

    def record_lost_range(self, segment: Segment, found: Unsound) -> None:
        """Record a damaged or missing range, in which transactions may have ended."""
        if found.next_offset <= self._next_offset:
            return
        self._next_offset = found.next_offset
        indexed = self.indexed() if self.state.open else {}
        for each in self.state.record_lost_range(found.first_offset, found.next_offset, indexed):
            if each.is_unsure:
                LOG.error("%s: %s", segment.path, describe_unsure_end(each))
            try:
                segment.transactions.insert(each)
                segment.changed = True
            except CorruptRecordError:
                pass  # the next reader rebuilds it from the log, with the same content


def describe_unsure_end(unsure: AbortedTxn) -> str:
    """Describe a transaction that may have ended in damage."""
    return (
        f"whether the transaction of producer {unsure.producer_id} from offset {unsure.first_offset} on was committed "
        f"is not known, as the log is damaged at offset {unsure.last_offset}: readers of committed records get an error"
    )


def recover_producers(directory: Path, segments: Sequence[Segment], end_offset: int, now_ms: int) -> ProducerRecovery:
    """Return the producers of a log with intact segments and transaction indexes."""
    found = ProducerRecovery(directory, segments, end_offset, now_ms, indexing=False)
    found.indexed = cache(lambda: read_indexed(segments_from(segments, found.start)))
    if found.start < end_offset:
        found.walk(segments)
    return found


def begin_recovery(
    directory: Path, segments: Sequence[Segment], unsure: int, point: int, now_ms: int
) -> ProducerRecovery:
    """Return the producers of a log after a crash, with the batches before segment number `unsure` replayed.

    That segment and later ones may be incomplete above the recovery point `point`. The caller replays their batches as it checks them.
    """
    first = segments[unsure]
    limit = point
    indexed = read_indexed(segments[unsure:])
    try:
        first.transactions.truncate(point)
    except CorruptRecordError:
        limit = min(point, first.base_offset)
        first.transactions.clear()
    found = ProducerRecovery(directory, segments, limit, now_ms, indexing=True)
    found.indexed = cache(lambda: read_indexed(segments[:unsure]) | indexed)
    if found.start < first.base_offset:
        found.walk(segments[:unsure])
    return found


def read_indexed(segments: Iterable[Segment]) -> IndexedAborts:
    """Return the entries of the transaction indexes; none if one is damaged."""
    indexed: IndexedAborts = {}
    for segment in segments:
        try:
            indexed |= {(each.producer_id, each.first_offset): each for each in segment.transactions}
        except CorruptRecordError:
            pass
    return indexed


def is_readable(segment: Segment, position: int, header: BatchHeader) -> bool:
    """Return True if the CRC of a batch is right."""
    try:
        verify(segment.read_batch(position, header), 0, header)
    except CorruptRecordError:
        return False
    return True


def restore_snapshot(
    directory: Path, snapshots: Sequence[int], limit: int, now_ms: int
) -> tuple[ProducerStateManager, int]:
    """Return the state of the latest intact snapshot at or below `limit`, and its offset; an empty state and 0 if there is none."""
    state = ProducerStateManager()
    for offset in reversed(snapshots):
        entries = read_snapshot(directory, offset, now_ms) if offset <= limit else None
        if entries is not None:
            state.restore(entries)
            return state, offset
    return state, 0


def open_transactions_at(directory: Path, segments: Sequence[Segment], offset: int) -> list[int]:
    """Return the first offsets of the transactions that are open at an offset, by the batches before it."""
    state, start = restore_snapshot(directory, snapshot_offsets(directory), offset, 0)
    for segment in segments_from(segments, start):
        for found in iter_headers(segment, start) if segment.base_offset < offset else ():
            if found.header.base_offset >= offset:
                break
            if found.header.producer_id >= 0:
                state.add(found.header, marker_at(segment, *found), 0)
    return list(state.open)


def remove_strays(directory: Path, snapshots: Sequence[int], keep: set[int], limit: int) -> None:
    """Delete the snapshots above `limit`, and those at other offsets than in `keep`."""
    for offset in snapshots:
        if offset > limit or offset not in keep:
            snapshot_path(directory, offset).unlink(missing_ok=True)


def segments_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """Return the segment that holds `offset`, and the later ones."""
    return segments[max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0) :]


def iter_headers(segment: Segment, from_offset: int) -> Iterator[VerifiedBatch]:
    """Return position and header of each verified batch from an offset on."""
    base_offset, position = segment.entry_before(from_offset)
    return (each for each in segment.batches(position, base_offset) if each.header.last_offset >= from_offset)


def iter_headers_and_damage(
    segment: Segment, from_offset: int, below: int | None = None
) -> Iterator[VerifiedBatch | Unsound]:
    """Yield the batches from an offset on and the damaged ranges between them. Batches that may be part of a transaction are checked by CRC.

    Damage at the end of the indexed batches extends to offset `below`, or to the next segment.
    """
    base_offset, position = segment.entry_before(from_offset)
    for found in segment.walk(position, base_offset, below):
        if isinstance(found, Unsound):
            if found.next_offset > from_offset:
                yield found
        elif found.header.last_offset >= from_offset:
            header = found.header
            sure = not can_be_transactional(header) or is_readable(segment, found.position, header)
            yield (
                found
                if sure
                else Unsound(
                    found.position,
                    header.size_bytes,
                    header.base_offset,
                    header.next_offset,
                    "its CRC is not that of its bytes",
                )
            )


def can_be_transactional(header: BatchHeader) -> bool:
    """Return True if a batch is part of a transaction, or may be the end of one with a damaged header."""
    return header.is_transactional or header.is_control or header.size_bytes == END_MARKER_BYTES


def marker_at(segment: Segment, position: int, header: BatchHeader) -> EndMarker | None:
    """Return the marker if the batch is the end of a transaction, else None.

    An unreadable marker also ends its transaction, and counts as a commit; if it was an abort, the transaction index has it.
    """
    if not header.is_control:
        return None
    data = segment.read_batch(position, header)
    try:
        verify(data, 0, header)
        return decode_end_marker(data, 0, header)
    except CorruptRecordError as error:
        LOG.warning("%s, position %d: the end of a transaction cannot be read: %s", segment.path, position, error)
        return EndMarker(ControlType.COMMIT, NONE)
