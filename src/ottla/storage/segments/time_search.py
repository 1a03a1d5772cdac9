"""Finding a record of a segment by its timestamp: by the time index, which is held against the batches before it is believed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.model import OffsetAndTimestamp
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.segments.record_times import first_at, latest_of

if TYPE_CHECKING:
    from ottla.storage.segments.segment import Segment

LOG = logging.getLogger(__name__)


def find_timestamp(segment: Segment, timestamp: int, from_offset: int) -> OffsetAndTimestamp | None:
    """The first record that is neither earlier than `timestamp` nor before `from_offset`."""
    number = segment.times.before(timestamp)
    if number >= 0 and not is_first(segment, segment.times, number):
        segment.rebuild()
        number = segment.times.before(timestamp)
    begin = from_offset if number < 0 else max(segment.times.entry(number)[1], from_offset)
    expected, start = segment.entry_before(begin)
    for position, header in segment.batches(start, expected):
        if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
            found = first_at(segment.batch(position, header), header, timestamp, from_offset)
            if found is not None:
                return found
    return None


def find_latest(segment: Segment) -> OffsetAndTimestamp | None:
    """The first record with the largest timestamp; where a header promises more than its records keep, theirs."""
    wanted = segment.latest()
    found = find_timestamp(segment, wanted, segment.base_offset)
    if found is not None:
        return found
    for position, header in segment.batches():
        if header.max_timestamp == wanted:
            return latest_of(segment.batch(position, header), header)
    return None


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
    LOG.warning("%s does not tell the times of its log: it is made anew", segment.beside(".timeindex"))
    return False
