"""Putting batches at the end of a log: whole, or not at all.

    checked ──► producers ──► stamped ──► room for them ──► written ──► accounted for ──► the end is told
       └──────────┴──── nothing is written yet ─┘               └── what fails is taken back ─┘

The one rule: what belongs to an append is read before the first byte is written, and the log's end is told last. A flush
beside us takes the end for all that there is to write.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import ErrorCode, IllegalStateError, KafkaError
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.batch import PREFIX_BYTES
from ottla.storage.files.storage_error import storage_error
from ottla.storage.indexes.time_index import NO_TIMESTAMP
from ottla.storage.log.high_watermark import forget_from, note_end
from ottla.storage.log.log_end import LOOK_MS
from ottla.storage.log.rolling import is_full, too_large
from ottla.storage.producers.producer_entry import Origin, RememberedBatch
from ottla.storage.recovery.transaction_check import ensure_true
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_end import Savepoint
from ottla.storage.validation.incoming import Incoming, checked

if TYPE_CHECKING:
    from ottla.storage.log import Log

LOG = logging.getLogger(__name__)


class Appended(NamedTuple):
    """Where batches are that were appended, now or when they were first sent."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the broker's clock stamps the records."""
    log_start_offset: int
    repeated: bool = False
    """Whether nothing was appended, as these batches are there already."""


def append(
    log: Log, data: Buffer, leader_epoch: int, now_ms: int, origin: Origin, transaction_version: int
) -> Appended:
    """What `Log.append` does."""
    if log.closed:
        raise IllegalStateError(f"the log in {log.directory} is closed")
    if not 0 <= now_ms - log.seen_ms < LOOK_MS:
        look(log, now_ms)
    config = log.config
    incoming = checked(data, config, origin, now_ms)
    if incoming.identified:
        repeated = log.producers.check(incoming.headers(), origin, incoming.markers, transaction_version)
        if repeated is not None:
            return answer_repeat(log, repeated)
    append_time_ms = now_ms if config.timestamp_type else None
    base_offset = log.end_offset
    last_offset = base_offset + incoming.offsets - 1
    incoming.stamp(base_offset, leader_epoch, append_time_ms)
    if incoming.size_bytes > config.segment_bytes:
        raise too_large(incoming.size_bytes, config)
    segment = segment_for(log, incoming.size_bytes, incoming.latest, base_offset, last_offset, now_ms)
    before = ready(log, segment, incoming, now_ms)
    try:
        segment.write(incoming.view)
        account(segment, incoming)
        log.epochs.assign(leader_epoch, base_offset)
        if incoming.identified:
            note_producers(log, segment, incoming, now_ms)
    except BaseException:
        take_back(log, segment, before, now_ms)
        raise
    log.end_offset = last_offset + 1
    if not log.replicated:
        log.high_watermark = last_offset + 1
    log.size_bytes += incoming.size_bytes
    time_ms = NO_TIMESTAMP if append_time_ms is None else append_time_ms
    return raw.five(Appended, base_offset, last_offset, time_ms, log.start_offset, False)


def look(log: Log, now_ms: int) -> None:
    """Refuse to write where nobody will ever read: into a file that has no name any more."""
    if not log.in_place:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{log.directory} was removed, moved or replaced while the broker ran: restore it, and start the broker anew",
        )
    log.seen_ms = now_ms


def answer_repeat(log: Log, batch: RememberedBatch) -> Appended:
    """Where a batch is that was sent twice."""
    time_ms = batch.timestamp if log.config.timestamp_type else NO_TIMESTAMP
    return Appended(batch.first_offset, batch.last_offset, time_ms, log.start_offset, repeated=True)


def segment_for(log: Log, size: int, latest: int, first_offset: int, last_offset: int, now_ms: int) -> Segment:
    """The active segment, after a roll where batches of that size, time and offsets must not go into the present one."""
    segments = log.segments
    segment = segments[len(segments) - 1]
    try:
        if is_full(segment, size, latest, last_offset, log.config, now_ms - log.active_since_ms):
            log.begin_segment(now_ms, first_offset)
            segment = segments[len(segments) - 1]
    except OSError as error:
        raise storage_error(f"cannot begin a new segment in {log.directory}", error) from error
    return segment


def ready(log: Log, segment: Segment, incoming: Incoming, now_ms: int) -> Savepoint:
    """Read what an append changes and nobody has read yet: once the bytes are written nothing may be left to fail.

    Where the segment stands, so that what fails all the same can be taken back.
    """
    try:
        if log.producers_in_doubt:
            log.restore_producers(now_ms)
        log.epochs.load()
        if incoming.markers and any(incoming.markers):
            ensure_true(log.directory, log.segments, len(log.segments) - 1, now_ms)
        if not segment.indexed():
            segment.load()
        return Savepoint(segment)
    except OSError as error:
        raise storage_error(f"cannot read what belongs to {segment.path}", error) from error


def account(segment: Segment, incoming: Incoming) -> None:
    """Have the segment know of batches that were written to its end."""
    octets = raw.pointer(incoming.view)
    position = 0
    while position < incoming.size_bytes:
        size = raw.int32(octets, position + 8) + PREFIX_BYTES
        last_offset = raw.int64(octets, position) + raw.int32(octets, position + 23)
        segment.account(last_offset, raw.int64(octets, position + 35), size)
        position += size
    segment.changed = True


def note_producers(log: Log, segment: Segment, incoming: Incoming, now_ms: int) -> None:
    """Have the log know who wrote, and which transactions that began or ended."""
    markers = incoming.markers
    for number, header in enumerate(incoming.headers()):
        if header.producer_id >= 0:
            marker = markers[number] if markers else None
            if marker is not None and log.replicated:
                note_end(log, header)
            aborted = log.producers.add(header, marker, now_ms)
            if aborted is not None:
                segment.transactions.append(aborted)
                segment.changed = True


def take_back(log: Log, segment: Segment, before: Savepoint, now_ms: int) -> None:
    """Be as before an append that failed on its way: its bytes are cut off, or covered by the next."""
    segment.roll_back(before)
    log.epochs.truncate_from(log.end_offset)
    forget_from(log, log.end_offset)
    log.producers_in_doubt = True
    try:
        log.restore_producers(now_ms)
    except Exception as error:  # whatever failed the append may fail here, too
        LOG.error("%s takes no records until its producers are known again: %s", log.directory.name, error)
