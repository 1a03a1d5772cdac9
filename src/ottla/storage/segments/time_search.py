"""Finding a record of a segment by its timestamp: by the time index, which is held against the batches before it is believed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError
from ottla.model import OffsetAndTimestamp
from ottla.records.batch import BatchHeader
from ottla.storage.batches.damage import DamagedLogError, damage_of
from ottla.storage.batches.scan import Window
from ottla.storage.batches.sound_walk import Found, Unsound, is_whole
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.segments.record_times import first_at, latest_of

if TYPE_CHECKING:
    from ottla.storage.segments.segment import Segment

LOG = logging.getLogger(__name__)
FAR_BYTES = 128 * 1024
"""Of a log: whoever asks for a time waits while its headers are read, some milliseconds where each batch is one small record."""


def find_timestamp(segment: Segment, timestamp: int, from_offset: int) -> OffsetAndTimestamp | None:
    """The first record that is neither earlier than `timestamp` nor before `from_offset`."""
    number = segment.times.before(timestamp)
    if number >= 0 and not is_first(segment, segment.times, number):
        segment.rebuild()
        number = segment.times.before(timestamp)
    begin = from_offset if number < 0 else max(segment.times.entry(number)[1], from_offset)
    expected, start = segment.entry_before(begin)
    look = partial(first_at, timestamp=timestamp, from_offset=from_offset)
    for batch in segment.batches(start, expected):
        if batch.header.max_timestamp >= timestamp and batch.header.last_offset >= from_offset:
            found = look_into(segment, batch, look)
            if found is not None:
                return found
    return None


def look_into(
    segment: Segment, batch: Found, look: Callable[[bytes, BatchHeader], OffsetAndTimestamp | None]
) -> OffsetAndTimestamp | None:
    """What is found among the records of a batch; DamagedLogError where they cannot be believed."""
    position, header = batch
    try:
        return look(segment.batch(position, header), header)
    except CorruptRecordError as error:
        found = Unsound(position, header.size_bytes, header.base_offset, header.next_offset, str(error))
        raise DamagedLogError(damage_of(segment.path, found)) from error


def find_latest(segment: Segment) -> OffsetAndTimestamp | None:
    """The first record with the largest timestamp; where a header promises more than its records keep, theirs."""
    wanted = segment.latest()
    found = find_timestamp(segment, wanted, segment.base_offset)
    if found is not None:
        return found
    for batch in segment.batches():
        if batch.header.max_timestamp == wanted:
            return look_into(segment, batch, latest_of)
    return None


def tells_latest(segment: Segment, times: TimeIndex, count: int) -> bool:
    """Whether the first entries of a time index, so many, lead to the largest timestamp: an index that lost its end leads to an earlier one.

    Then a batch soon behind the last entry is later. A whole index has its last entry at the end, where times grow as the log does.
    """
    if segment.rebuilt:
        return True
    if count and not is_first(segment, times, count - 1):
        return False
    window = Window(segment.file, segment.size, 0)
    expected, start = segment.entry_before(times.entry(count - 1)[1] if count else segment.base_offset)
    for batch in segment.batches(start, expected):
        if batch.position >= min(start + FAR_BYTES, segment.own_position):
            break
        if batch.header.max_timestamp > segment.max_timestamp and is_whole(window, batch):
            return disbelieved(segment)
    return True


def is_first(segment: Segment, times: TimeIndex, number: int) -> bool:
    """Whether an entry of a time index names the first batch that reaches its timestamp; looks back to the entry before."""
    if segment.rebuilt:
        return True
    timestamp, offset = times.entry(number)
    before = times.entry(number - 1)[1] if number else segment.base_offset
    expected, start = segment.entry_before(before)
    for _, header in segment.batches(start, expected):
        if header.last_offset >= offset:
            if header.base_offset <= offset and header.max_timestamp == timestamp:
                return True
            break
        if header.max_timestamp >= timestamp:
            break
    return disbelieved(segment)


def disbelieved(segment: Segment) -> bool:
    """Say that a time index is made anew; False."""
    LOG.warning("%s does not tell the times of its log: it is made anew", segment.beside(".timeindex"))
    return False
