"""When a segment is full: decided from its size, its age and its indexes."""

from __future__ import annotations

from ottla.errors import ErrorCode, KafkaError
from ottla.model import INT32_MAX
from ottla.storage.indexes.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.indexes.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_end import UNREAD


def too_large(size: int, config: LogConfig) -> KafkaError:
    """The refusal of what fits into no segment."""
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes at once, segment.bytes is {config.segment_bytes}")


def is_full(segment: Segment, size: int, latest: int, last_offset: int, config: LogConfig, open_ms: int) -> bool:
    """Whether batches must not go into the active segment, which was begun `open_ms` ago.

    They have `size` bytes, reach `last_offset`, and their records the time `latest`.
    """
    limit, filled = config.segment_bytes, segment.size
    if segment.ground.damages:
        return True
    return filled > 0 and (
        filled + size > limit
        or last_offset - segment.base_offset > INT32_MAX
        or has_full_index(segment, config.segment_index_bytes)
        or age_ms(segment, latest, open_ms) > config.roll_ms
    )


def has_full_index(segment: Segment, limit: int) -> bool:
    """Whether an index has no room for what an append may add, at most `limit` bytes."""
    if not segment.indexed():
        segment.load()
    offsets, times = segment._offsets, segment._times
    assert offsets is not None
    assert times is not None
    return len(offsets) >= limit // OFFSET_ENTRY_BYTES or len(times) >= limit // TIME_ENTRY_BYTES - 1


def age_ms(segment: Segment, latest: int, open_ms: int) -> int:
    """By the records' own clock where they have one, else by ours, as Kafka does.

    Markers are of our clock, so that `latest` leaves them out: amid records of long ago each would begin a segment.
    """
    first = segment.first_time
    if first == UNREAD:
        first = segment.first_timestamp()
    return open_ms if first < 0 else max(latest, first) - first
