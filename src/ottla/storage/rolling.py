"""When a segment is full: decided from its size, its age and its indexes."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.errors import ErrorCode, KafkaError
from ottla.records.batch import BatchHeader
from ottla.storage.log_config import INT_MAX, LogConfig
from ottla.storage.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.segment import Segment
from ottla.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES


def is_full(segment: Segment, size: int, headers: Sequence[BatchHeader], config: LogConfig, open_ms: int) -> bool:
    """Whether `size` bytes of these batches must not go into the active segment, which was begun `open_ms` ago.

    KafkaError(RECORD_LIST_TOO_LARGE) where they fit into none.
    """
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes at once, segment.bytes is {config.segment_bytes}"
        )
    return segment.damaged or (
        segment.size > 0
        and (
            segment.size + size > config.segment_bytes
            or headers[-1].last_offset - segment.base_offset > INT_MAX
            or len(segment.offsets) >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
            or len(segment.times) >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
            or age_ms(segment, headers, open_ms) > config.roll_ms
        )
    )


def age_ms(segment: Segment, headers: Sequence[BatchHeader], open_ms: int) -> int:
    """By the records' own clock where they have one, else by ours, as Kafka does.

    Markers are of our clock: amid records of long ago each would begin a segment.
    """
    first = segment.first_timestamp()
    times = [header.max_timestamp for header in headers if not header.is_control]
    return open_ms if first < 0 else max(times, default=first) - first
