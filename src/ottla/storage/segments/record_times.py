"""Finding the record of a batch that a timestamp asks for; the only place where storage looks inside a batch."""

from __future__ import annotations

from ottla.model import Buffer, OffsetAndTimestamp, TimestampType
from ottla.records.batch import BatchHeader


def first_at(data: Buffer, header: BatchHeader, timestamp: int, from_offset: int) -> OffsetAndTimestamp | None:
    """The first record of the batch at or after both `timestamp` and `from_offset`."""
    if header.is_control or header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        # One timestamp for all: that of the batch.
        if header.max_timestamp < timestamp or header.last_offset < from_offset:
            return None
        return OffsetAndTimestamp(max(header.base_offset, from_offset), header.max_timestamp, header.leader_epoch)
    from ottla.records.columns import decode  # a broker needs it for nothing else

    columns = decode(data, from_offset=from_offset, with_headers=False)
    for offset, found in zip(columns.offsets, columns.timestamps, strict=True):
        if found >= timestamp:
            return OffsetAndTimestamp(offset, found, header.leader_epoch)
    return None


def latest_of(data: Buffer, header: BatchHeader) -> OffsetAndTimestamp | None:
    """The first record of the batch with the largest timestamp in it; None where it has no records."""
    from ottla.records.columns import decode

    columns = decode(data, with_headers=False)
    times = list(columns.timestamps)
    if not times:
        return None
    row = times.index(max(times))
    return OffsetAndTimestamp(columns.offsets[row], times[row], header.leader_epoch)
