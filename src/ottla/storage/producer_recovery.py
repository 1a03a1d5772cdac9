"""Finding the producers of a log that is opened: from the latest snapshot, and the batches behind it.

After a clean shutdown the snapshot is that of the log's end. After a crash the snapshots above the recovery point, and
the transaction indexes from there on, may lack what the disk had not yet: both are made anew from the batches.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.records.batch import BatchHeader, verify
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.producer_entry import NONE
from ottla.storage.producer_snapshot import read_snapshot, snapshot_offsets, snapshot_path, write_snapshot
from ottla.storage.producer_state import AbortedTransaction, ProducerState
from ottla.storage.segment import Segment
from ottla.storage.sound_walk import Found
from ottla.storage.transaction_index import TransactionIndex

LOG = logging.getLogger(__name__)


class ProducerRecovery:
    """Takes up the batches of a log that is opened, each once and in their order, from the latest snapshot on."""

    def __init__(self, directory: Path, bases: Sequence[int], limit: int, now_ms: int, *, indexing: bool) -> None:
        """Snapshots above the offset `limit` are not to be trusted and go, as do those that no segment needs.

        With `indexing` the transaction indexes are given what they lack.
        """
        self.state, self.start = restore(directory, limit, now_ms)
        self.latest = self.start
        """The offset of the latest snapshot."""
        self.told: dict[int, AbortedTransaction] = {}
        """What the transaction indexes say of the markers that are read again: of those that are damaged nothing else does."""
        self._next_offset = self.start
        self._directory = directory
        self._now_ms = now_ms
        self._indexing = indexing
        remove_strays(directory, {*bases, self.start}, limit)

    def walk(self, segments: Sequence[Segment]) -> None:
        """Take the batches of segments as far as they were noted, by their headers alone."""
        for segment in segments_from(segments, self._next_offset):
            for position, header in headers(segment, self._next_offset):
                self.take(segment, position, header)

    def begin(self, segment: Segment) -> None:
        """Take up a segment of which nothing is known to be on the disk, but for the log itself."""
        self.told |= told_by(segment)
        segment.transactions.clear()
        if segment.base_offset > self.latest:
            try:
                write_snapshot(self._directory, segment.base_offset, self.state.entries.values())
                self.latest = segment.base_offset
            except OSError as error:
                # On a full disk the log is read all the same; the next start has more to read.
                LOG.debug("no snapshot of producers in %s: %s", self._directory, error)

    def take(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Account for a batch, unless it was before."""
        if header.base_offset < self._next_offset:
            return
        self._next_offset = header.next_offset
        if header.producer_id < 0:
            return
        aborted = self.state.add(header, marker_at(segment, position, header), self._now_ms)
        if aborted is None and header.base_offset in self.told and not is_readable(segment, position, header):
            aborted = self.told[header.base_offset]
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
    told = told_by(first)
    try:
        first.transactions.truncate(point)
    except CorruptRecordError:
        limit = min(point, first.base_offset)
        first.transactions.clear()
    found = ProducerRecovery(directory, [segment.base_offset for segment in segments], limit, now_ms, indexing=True)
    found.told = told
    if found.start < first.base_offset:
        found.walk(segments[:unsure])
    return found


def told_by(segment: Segment) -> dict[int, AbortedTransaction]:
    """What the transaction index of a segment says, by the offset of the marker; nothing where it is damaged."""
    try:
        return {each.last_offset: each for each in segment.transactions}
    except CorruptRecordError:
        return {}


def ensure_true(directory: Path, segments: Sequence[Segment], number: int, now_ms: int) -> TransactionIndex:
    """The transaction index of a segment, which says what the log says: it is made anew where its file does not.

    The batches of the segment are looked at once, and only where there is a file that was not written in this run.
    """
    index = segments[number].transactions
    told: list[AbortedTransaction] | None = None
    try:
        told = list(index)
    except CorruptRecordError as error:
        LOG.warning("%s: it is made anew from the log", error)
    if not index.believed:
        found = aborted_in(directory, segments, number, now_ms)
        true = with_lost_markers(segments[number], found, told or ())
        if told is not None and told != true:
            LOG.warning("%s says %s, the log says %s: it is made anew", index.path, told, true)
        index.confirm(true)
        segments[number].changed = True
    return index


def aborted_in(directory: Path, segments: Sequence[Segment], number: int, now_ms: int) -> list[AbortedTransaction]:
    """The transactions that end in a segment by an abort, as its batches and those before it say."""
    segment = segments[number]
    state, start = restore(directory, segment.base_offset, now_ms)
    found: list[AbortedTransaction] = []
    for each in segments_from(segments[: number + 1], start):
        aborted = replay(each, start, state, now_ms)
        found += aborted if each is segment else ()
    return found


def with_lost_markers(
    segment: Segment, found: list[AbortedTransaction], told: Iterable[AbortedTransaction]
) -> list[AbortedTransaction]:
    """Also those whose marker is damaged: only the index knows of them."""
    known = {each.last_offset for each in found}
    lost = [each for each in told if each.last_offset not in known and is_lost(segment, each.last_offset)]
    return sorted([*found, *lost], key=lambda each: each.last_offset)


def is_lost(segment: Segment, offset: int) -> bool:
    """Whether what lies at an offset cannot be read."""
    base_offset, position = segment.entry_before(offset)
    reaching = (each for each in segment.batches(position, base_offset) if each.header.last_offset >= offset)
    found = next(reaching, None)
    return found is None or found.header.base_offset > offset or not is_readable(segment, *found)


def is_readable(segment: Segment, position: int, header: BatchHeader) -> bool:
    """Whether the CRC of a batch holds."""
    try:
        verify(segment.batch(position, header), 0, header)
    except CorruptRecordError:
        return False
    return True


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


def replay(segment: Segment, from_offset: int, state: ProducerState, now_ms: int) -> list[AbortedTransaction]:
    """Account for the segment's batches; the transactions that they abort."""
    found = []
    for position, header in headers(segment, from_offset):
        if header.producer_id >= 0:
            aborted = state.add(header, marker_at(segment, position, header), now_ms)
            if aborted is not None:
                found.append(aborted)
    return found


def headers(segment: Segment, from_offset: int) -> Iterator[Found]:
    """Position and header of each batch from an offset on that can be believed."""
    base_offset, position = segment.entry_before(from_offset)
    return (each for each in segment.batches(position, base_offset) if each.header.last_offset >= from_offset)


def marker_at(segment: Segment, position: int, header: BatchHeader) -> EndMarker | None:
    """The end of a transaction, where the batch is one.

    One that cannot be read ends it all the same; if that was an abort, the transaction index knows.
    """
    if not header.is_control:
        return None
    data = segment.batch(position, header)
    try:
        verify(data, 0, header)
        return decode_end_marker(data, 0, header)
    except CorruptRecordError as error:
        LOG.warning("%s, position %d: the end of a transaction cannot be read: %s", segment.path, position, error)
        return EndMarker(ControlType.COMMIT, NONE)
