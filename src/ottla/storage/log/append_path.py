"""The append path of a log: batches are appended whole, or not at all.

    validate ──► check producers ──► stamp ──► choose a segment ──► write ──► update indexes and producers ──► move the end
       └────────────┴──── nothing is written yet ─────┘                └── a failure is rolled back ──┘

Everything that an append needs from the disk is read before the first byte is written. The log's end moves last, because a flush in
another thread flushes everything below it. The same rules hold for batches of a client (`append_batches`) and for those of a leader,
which keep their offsets (`Log.append_as_is`).

This module is compiled: `LogEnd` has the fields of a log that an append reads and changes, so that they are C fields. All else
of a log is in `log.py`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from ottla.errors import ErrorCode, IllegalStateError, KafkaError
from ottla.model import INT32_MAX, Buffer
from ottla.records import raw
from ottla.records.batch import PREFIX_BYTES, BatchHeader
from ottla.storage.files.storage_error import storage_error
from ottla.storage.indexes.index_set import IndexSavepoint
from ottla.storage.indexes.time_index import NO_TIMESTAMP
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin, RememberedBatch
from ottla.storage.producers.producer_state import ProducerStateManager
from ottla.storage.recovery.transaction_check import verify_transaction_index
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_end import UNREAD
from ottla.storage.validation.incoming import Incoming, check_incoming

LOG = logging.getLogger(__name__)
PLACE_CHECK_MS = 100
"""Time between two checks that the active segment's file is still in its directory."""


class Appended(NamedTuple):
    """The position of appended batches, or of the first copy of batches that were sent again."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the broker's clock stamps the records."""
    log_start_offset: int
    repeated: bool = False
    """True if nothing was appended because the batches are in the log already."""


class LogEnd:
    """The fields of a log that an append reads and changes."""

    def __init__(self, directory: Path, config: LogConfig, segments: list[Segment], epochs: LeaderEpochs) -> None:
        self.directory = directory
        self.config = config
        """May be replaced at any time, with effect from the next append."""
        self.segments = segments
        self.epochs = epochs
        self.start_offset = 0
        self.end_offset = 0
        self.replicated = False
        """True if other brokers have replicas; otherwise a batch is committed when it is appended."""
        self.high_watermark = 0
        """Everything below is committed and visible to consumers."""
        self.producers = ProducerStateManager()
        self.size_bytes = 0
        self.closed = False
        self.producers_in_doubt = False
        """True if an append failed halfway, and the producers have not been read from the log again since."""
        self.active_since_ms = 0
        """The time at which the active segment was created."""
        self.seen_ms = -PLACE_CHECK_MS
        """The time of the last check that the active segment's file is in its directory."""

    # The methods that an append needs of the rest of the log. `Log` implements them.

    @property
    def is_in_place(self) -> bool:
        """True if the file that is written to is still the one in the directory."""
        return True

    def begin_segment(self, now_ms: int, base_offset: int = 0) -> None:
        """Close the active segment and create the next one."""

    def restore_producers(self, now_ms: int) -> None:
        """Rebuild the producer state from the log."""

    def record_transaction_end(self, header: BatchHeader) -> None:
        """Record that the marker with this header ends a transaction."""

    def lower_high_watermark(self, end_offset: int) -> None:
        """Lower the high watermark to the end of a truncated log."""


def append_batches(
    log: LogEnd, data: Buffer, leader_epoch: int, now_ms: int, origin: Origin, transaction_version: int
) -> Appended:
    """Append as `Log.append` documents."""
    if log.closed:
        raise IllegalStateError(f"the log in {log.directory} is closed")
    check_place(log, now_ms)
    config = log.config
    incoming = check_incoming(data, config, origin, now_ms)
    if incoming.identified:
        repeated = log.producers.check(incoming.headers(), origin, incoming.markers, transaction_version)
        if repeated is not None:
            return position_of_repeated(log, repeated)
    append_time_ms = now_ms if config.timestamp_type else None
    base_offset = log.end_offset
    last_offset = base_offset + incoming.offsets - 1
    incoming.stamp(base_offset, leader_epoch, append_time_ms)
    if incoming.size_bytes > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batches have {incoming.size_bytes} bytes, more than segment.bytes = {config.segment_bytes}",
        )
    segment = segment_for(log, incoming.size_bytes, incoming.latest, base_offset, last_offset, now_ms)
    before = prepare_segment(log, segment, incoming, now_ms)
    try:
        segment.write(incoming.view)
        account(segment, incoming)
        log.epochs.assign(leader_epoch, base_offset)
        if incoming.identified:
            update_producers(log, segment, incoming, now_ms)
    except BaseException:
        roll_back_append(log, segment, before, now_ms)
        raise
    log.end_offset = last_offset + 1
    if not log.replicated:
        log.high_watermark = last_offset + 1
    log.size_bytes += incoming.size_bytes
    time_ms = NO_TIMESTAMP if append_time_ms is None else append_time_ms
    return raw.five(Appended, base_offset, last_offset, time_ms, log.start_offset, False)


def check_place(log: LogEnd, now_ms: int) -> None:
    """Raise KafkaError if the directory was removed or replaced: no reader would ever find what is written to the open file."""
    if not 0 <= now_ms - log.seen_ms < PLACE_CHECK_MS:
        if not log.is_in_place:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{log.directory} was removed, moved or replaced while the broker was running: restore it and restart the broker",
            )
        log.seen_ms = now_ms


def position_of_repeated(log: LogEnd, batch: RememberedBatch) -> Appended:
    """Return the position of the first copy of a batch that was sent again."""
    time_ms = batch.timestamp if log.config.timestamp_type else NO_TIMESTAMP
    return Appended(batch.first_offset, batch.last_offset, time_ms, log.start_offset, repeated=True)


def segment_for(log: LogEnd, size: int, latest: int, first_offset: int, last_offset: int, now_ms: int) -> Segment:
    """Return the active segment; create the next one if batches of that size, time and offsets do not fit into it."""
    segments = log.segments
    segment = segments[len(segments) - 1]
    try:
        if is_full(segment, size, latest, last_offset, log.config, now_ms - log.active_since_ms):
            log.begin_segment(now_ms, first_offset)
            segment = segments[len(segments) - 1]
    except OSError as error:
        raise storage_error(f"cannot create a new segment in {log.directory}", error) from error
    return segment


def prepare_segment(log: LogEnd, segment: Segment, incoming: Incoming, now_ms: int) -> IndexSavepoint:
    """Read everything that the append will change, so that nothing is left to fail once bytes are written.

    Return the state of the segment, to which a failed append is rolled back.
    """
    try:
        if log.producers_in_doubt:
            log.restore_producers(now_ms)
        log.epochs.load()
        if incoming.markers and any(incoming.markers):
            verify_transaction_index(log.directory, log.segments, len(log.segments) - 1, now_ms)
        if not segment.indexes.is_loaded():
            segment.load_indexes()
        return segment.indexes.savepoint(segment.size)
    except OSError as error:
        raise storage_error(f"cannot read the indexes of {segment.path}", error) from error


def account(segment: Segment, incoming: Incoming) -> None:
    """Update the segment's size, timestamps and indexes for batches that were written to its end."""
    octets = raw.pointer(incoming.view)
    position = 0
    while position < incoming.size_bytes:
        size = raw.int32(octets, position + 8) + PREFIX_BYTES
        last_offset = raw.int64(octets, position) + raw.int32(octets, position + 23)
        segment.account(last_offset, raw.int64(octets, position + 35), size)
        position += size
    segment.changed = True


def update_producers(log: LogEnd, segment: Segment, incoming: Incoming, now_ms: int) -> None:
    """Update the producer state, and the segment's aborted transactions, for appended batches."""
    markers = incoming.markers
    for number, header in enumerate(incoming.headers()):
        if header.producer_id >= 0:
            marker = markers[number] if markers else None
            if marker is not None and log.replicated:
                log.record_transaction_end(header)
            aborted = log.producers.add(header, marker, now_ms)
            if aborted is not None:
                segment.transactions.append(aborted)
                segment.changed = True


def roll_back_append(log: LogEnd, segment: Segment, before: IndexSavepoint, now_ms: int) -> None:
    """Restore the state before a failed append; its bytes are truncated, or overwritten by the next append."""
    segment.roll_back(before)
    log.epochs.truncate_from(log.end_offset)
    log.lower_high_watermark(log.end_offset)
    log.producers_in_doubt = True
    try:
        log.restore_producers(now_ms)
    except Exception as error:  # the cause of the failed append may make this fail as well
        LOG.error("%s rejects records until its producer state can be read again: %s", log.directory.name, error)


# Rolling: a segment is full by its size, its age or its indexes.


def is_full(segment: Segment, size: int, latest: int, last_offset: int, config: LogConfig, open_ms: int) -> bool:
    """Return True if batches must not go into the active segment, which was created `open_ms` ago.

    The batches have `size` bytes, end at `last_offset`, and have `latest` as their largest timestamp.
    """
    limit, filled = config.segment_bytes, segment.size
    if segment.ranges.damages:
        return True
    return filled > 0 and (
        filled + size > limit
        or last_offset - segment.base_offset > INT32_MAX
        or has_full_index(segment, config.segment_index_bytes)
        or age_ms(segment, latest, open_ms) > config.roll_ms
    )


def has_full_index(segment: Segment, limit: int) -> bool:
    """Return True if an index of at most `limit` bytes has no space for the entries of another append."""
    if not segment.indexes.is_loaded():
        segment.load_indexes()
    return segment.indexes.has_reached(limit)


def age_ms(segment: Segment, latest: int, open_ms: int) -> int:
    """Return the segment's age by the records' timestamps if they have any, else by the broker's clock, as Kafka does.

    Markers have the broker's time and are not part of `latest`: among old records each would start a new segment.
    """
    first = segment.first_time
    if first == UNREAD:
        first = segment.first_timestamp()
    return open_ms if first < 0 else max(latest, first) - first
