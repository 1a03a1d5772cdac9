"""Decide how many segments retention deletes, by size, age and log start: oldest first, whole segments only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.model import INT64_MAX
from ottla.storage.log_config import LogConfig


class SegmentAge(NamedTuple):
    """The properties of a segment that retention needs."""

    size: int
    max_timestamp: int
    """The largest timestamp of its records, or the time of the last write if they have none."""
    next_offset: int
    """The base offset of the following segment, or the end of the log."""


def count_deletable(
    segments: Iterable[SegmentAge],
    total_bytes: int,
    config: LogConfig,
    *,
    start_offset: int,
    now_ms: int,
    high_watermark: int = INT64_MAX,
) -> int:
    """Return how many segments from the front may be deleted. Records above the high watermark stay."""
    excess = total_bytes - config.retention_bytes
    count = 0
    for segment in segments:
        below_start = segment.next_offset <= start_offset
        expired = config.is_deleting and 0 <= config.retention_ms < now_ms - segment.max_timestamp
        too_much = config.is_deleting and config.retention_bytes >= 0 and excess >= segment.size
        if segment.next_offset > high_watermark or not (below_start or expired or too_much):
            break
        excess -= segment.size
        count += 1
    return count
