"""Cutting a log: a follower gives up what its leader does not have (KIP-101, KIP-279).

    checkpoints lowered ──► later segments go, the last first ──► the one with the offset is cut ──► what follows from the batches

**A kill between any two steps leaves a log that opens to a part of it, from its start on**: never with a hole, never with the end of
another history. So checkpoints come first, as a start believes whatever lies below the recovery point. Then files go from the
end, the folder is forced to the disk, the segment is cut and forced: only then may others be appended in the place of what is gone,
else a loss of power could mix them. All else is found in the batches: indexes go back with them, producers and open transactions
are taken from the snapshot below and the batches behind it (a snapshot above would bring back what is no more), and a start that
comes in between does the same.

A follower whose leader's log begins behind its own end keeps nothing, and begins where that begins.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.storage.batches.sound_walk import Found
from ottla.storage.files.durable import sync_path
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log.high_watermark import forget_from
from ottla.storage.recovery.lost_offsets import drop_lost
from ottla.storage.segments.beginning import note_deleted
from ottla.storage.segments.reader_lock import READER_LOCK
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.succession import note_nothing

if TYPE_CHECKING:
    from ottla.storage.log import Log


def truncate_to(log: Log, offset: int, now_ms: int) -> int:
    """What `Log.truncate_to` does."""
    if offset >= log.end_offset and not log.producers_in_doubt:  # as after a cut that failed on its way
        log.epochs.truncate_from(log.end_offset)  # one may have begun, and have no batch yet
        return log.end_offset
    if offset < log.bases[0]:
        return start_anew(log, offset, now_ms)
    # Where a segment would be left empty the one before grows again, as where there never was another.
    segment = log.segments[max(bisect_left(log.bases, offset) - 1, 0)]
    ensure_at_rest(log, segment)
    try:
        position, end = cut_point(segment, offset)
        log.before_cut(end)
        log.lower_recovery_point(end)
        note_nothing(log.directory, segment.base_offset)
        drop_behind(log, segment.base_offset)
        segment.truncate(position, end)
        settle(log, end, now_ms)
    except OSError as error:
        raise storage_error(f"cannot cut the log in {log.directory} at offset {offset}", error) from error
    return end


def start_anew(log: Log, offset: int, now_ms: int) -> int:
    """What `Log.truncate_fully_and_start_at` does."""
    ensure_at_rest(log, log.segments[0])
    try:
        note_deleted(log.directory, max(offset, log.bases[0]))
        log.before_cut(0)
        log.lower_recovery_point(0)
        log.forget_snapshots()
        drop_behind(log, -1)
        log.begin_at(offset)
        settle(log, offset, now_ms)
        log.epochs.flush(offset)  # no batch is left that would say that those in the file are gone
    except OSError as error:
        log.closed = log.closed or not log.segments
        raise storage_error(f"cannot begin the log in {log.directory} anew", error) from error
    return offset


def ensure_at_rest(log: Log, segment: Segment) -> None:
    """KafkaError where compaction is at work on files that are to go: it ends soon, and the cut is tried again."""
    if log.cleaning and segment is not log.segments[-1]:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{log.directory.name} is being compacted and can be cut at offset {segment.base_offset} only after that: try again",
        )


def cut_point(segment: Segment, offset: int) -> tuple[int, int]:
    """Where the batch begins that holds an offset, or the first behind it; and the offset that the one before ends with."""
    end, position = segment.entry_before(offset)
    if position and segment.ends_at(position)[1] >= offset:
        end, position = segment.entry_before(end - 1)
    for found in segment.stretches(position, end):
        next_offset = found.header.next_offset if isinstance(found, Found) else found.next_offset
        if next_offset > offset:
            return found.position, end
        end = next_offset
    return segment.size, end


def drop_behind(log: Log, offset: int) -> None:
    """Delete the segments that begin behind an offset, the last first: what is left is whole at any time."""
    dropped = log.producers_in_doubt  # by a cut that failed on its way, of which the folder may not know yet
    while log.segments and log.segments[-1].base_offset > offset:
        segment = log.segments[-1]
        segment.retire()
        try:
            segment.delete()
        finally:
            if not segment.path.exists():
                with READER_LOCK:
                    log.drop_last()
                dropped = True
    if dropped:
        sync_path(log.directory)


def settle(log: Log, end: int, now_ms: int) -> None:
    """Let all that follows from the batches follow from those that are left."""
    log.end_offset = end
    if log.torn_at is not None and end <= log.torn_at:
        log.torn_at = None
    log.start_offset = min(log.start_offset, end)
    log.active_since_ms = now_ms
    log.size_bytes = sum(segment.size for segment in log.segments)
    forget_from(log, end)
    drop_lost(log.directory, end)
    log.epochs.truncate_from(end)
    try:
        log.segments[-1].transactions.truncate(end)
    except CorruptRecordError:
        pass  # Before anybody reads it, it is made anew from the log.
    log.producers_in_doubt = True
    log.restore_producers(now_ms)
