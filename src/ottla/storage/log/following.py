"""Putting a leader's batches at the end of a follower's log, as they are.

    whole? ──► going on? ──► each batch: room for it ──► written ──► accounted for ──► the end is told

A follower keeps the leader's offsets, epochs and timestamps byte for byte, so that both logs are the same up to where they part. It decides
nothing: what a producer may do was decided by the leader, and limits of size are the leader's, too. But it believes nothing either. What
cannot be is refused before the first byte is written: a CRC that does not hold, an offset or an epoch that goes back, an
epoch that is later than the leader said its own was. Offsets may be missing: the leader has compacted them away. And a leader's log may
begin in the middle of a batch, where records were deleted: a copy that has nothing yet begins with the whole of that.

Each batch is whole in the log, or not there; where one cannot be written those before it stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import CorruptRecordError, IllegalStateError
from ottla.model import Buffer
from ottla.records.batch import BatchHeader, iter_headers, verify
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log.appending import look, segment_for, take_back
from ottla.storage.log.high_watermark import note_end
from ottla.storage.log.log_end import LOOK_MS
from ottla.storage.log.truncation import start_anew
from ottla.storage.recovery.transaction_check import ensure_true
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_end import Savepoint

if TYPE_CHECKING:
    from ottla.storage.log import Log

NEVER = -0x8000_0000_0000_0000
"""Earlier than any record: markers do not tell how old a segment is."""
REMEDY = "nothing of it was kept, and it is fetched again"


class Copied(NamedTuple):
    """A batch that was checked and is to be written."""

    view: memoryview
    header: BatchHeader
    marker: EndMarker | None
    """How it ends a transaction, if it does."""


def append_as_is(log: Log, data: Buffer, leader_epoch: int, now_ms: int) -> int:
    """What `Log.append_as_is` does."""
    if log.closed:
        raise IllegalStateError(f"the log in {log.directory} is closed")
    if not 0 <= now_ms - log.seen_ms < LOOK_MS:
        look(log, now_ms)
    batches = list(copied(log, memoryview(data), leader_epoch))
    if batches and batches[0].header.base_offset < log.end_offset:
        start_anew(log, batches[0].header.base_offset, now_ms)
    for batch in batches:
        append_batch(log, batch, now_ms)
    return log.end_offset


def copied(log: Log, view: memoryview, leader_epoch: int) -> Iterator[Copied]:
    """The batches, all that are whole: an answer may end in the middle of one. CorruptRecordError for what cannot be."""
    expected, latest, position = log.end_offset, log.epochs.latest(), 0
    for position, header in iter_headers(view):
        ensure_true_batch(log, view, position, header)
        if not position and begins_within(log, header):
            expected = header.base_offset
        ensure_going_on(log, header, expected, latest, leader_epoch)
        expected, latest = header.next_offset, max(latest, header.leader_epoch)
        marker = decode_end_marker(view, position, header) if header.is_control else None
        yield Copied(view[position : position + header.size_bytes], header, marker)
        position += header.size_bytes
    if view and not position:
        raise CorruptRecordError(f"{name_of(log)}: the leader sent {len(view)} bytes without a whole batch; {REMEDY}")


def begins_within(log: Log, header: BatchHeader) -> bool:
    """Whether the copy has nothing yet, and where it is to begin is in the middle of this batch."""
    return not log.size_bytes and header.base_offset < log.end_offset < header.next_offset


def ensure_true_batch(log: Log, view: memoryview, position: int, header: BatchHeader) -> None:
    """CorruptRecordError where a batch is not what it was when the leader wrote it."""
    try:
        verify(view, position, header)
    except CorruptRecordError as error:
        raise CorruptRecordError(
            f"{name_of(log)}: what the leader sent at offset {header.base_offset} is damaged: {error}; {REMEDY}"
        ) from None


def ensure_going_on(log: Log, header: BatchHeader, expected: int, latest: int, leader_epoch: int) -> None:
    """CorruptRecordError where a batch does not belong behind what is there."""
    if header.base_offset < expected:
        fault = f"the batch has offset {header.base_offset}, expected {expected} or more"
    elif header.leader_epoch < latest:
        fault = f"the batch at offset {header.base_offset} has leader epoch {header.leader_epoch}, after {latest}"
    elif header.leader_epoch > leader_epoch:
        fault = f"the batch at offset {header.base_offset} has leader epoch {header.leader_epoch}, the leader's is {leader_epoch}"
    else:
        return
    raise CorruptRecordError(f"{name_of(log)}: the leader sent what does not go on with this copy: {fault}; {REMEDY}")


def name_of(log: Log) -> str:
    return log.directory.name


def append_batch(log: Log, batch: Copied, now_ms: int) -> None:
    """Put one batch at the end."""
    view, header, marker = batch
    latest = NEVER if header.is_control else header.max_timestamp
    segment = segment_for(log, header.size_bytes, latest, header.base_offset, header.last_offset, now_ms)
    before = ready(log, segment, now_ms, has_marker=marker is not None)
    try:
        segment.write(view)
        segment.note(header)
        segment.changed = True
        log.epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            note_producer(log, segment, header, marker, now_ms)
    except BaseException:
        take_back(log, segment, before, now_ms)
        raise
    log.end_offset = header.next_offset
    if not log.replicated:
        log.high_watermark = log.end_offset
    log.size_bytes += header.size_bytes


def ready(log: Log, segment: Segment, now_ms: int, *, has_marker: bool) -> Savepoint:
    """Read what a batch changes and nobody has read yet; where the segment stands before it."""
    try:
        if log.producers_in_doubt:
            log.restore_producers(now_ms)
        log.epochs.load()
        if has_marker:
            ensure_true(log.directory, log.segments, len(log.segments) - 1, now_ms)
        return segment.savepoint()
    except OSError as error:
        raise storage_error(f"cannot read what belongs to {segment.path}", error) from error


def note_producer(log: Log, segment: Segment, header: BatchHeader, marker: EndMarker | None, now_ms: int) -> None:
    """Have the log know who wrote, and of a transaction that began or ended."""
    if marker is not None and log.replicated:
        note_end(log, header)
    aborted = log.producers.add(header, marker, now_ms)
    if aborted is not None:
        segment.transactions.append(aborted)
