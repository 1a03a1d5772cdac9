"""Plan a compaction by sizes and times: is it needed, from where to where, and which segments become one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from ottla.model import INT32_MAX, INT64_MAX
from ottla.storage.log_config import LogConfig


class Cleanable(Protocol):
    """The properties of a segment that a plan needs."""

    base_offset: int
    size: int

    def largest_timestamp(self) -> int:
        """Return its largest timestamp; -1 if there is none."""

    def first_timestamp(self) -> int:
        """Return the timestamp of its first batch; -1 if there is none."""


class CleaningPlan(Struct, frozen=True):
    """A stretch of a log that could be compacted."""

    first_dirty: int
    """Below this offset keys have been looked at before."""
    upper_bound: int
    """From this offset on nothing may be touched; it is the beginning of a segment."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """True if a record in it is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        """Share of bytes that were not compacted before."""
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)

    def is_due(self, config: LogConfig) -> bool:
        """Return True if the compaction is worth its cost."""
        return self.dirty_bytes > 0 and (self.overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio)


def plan_compaction(
    segments: Sequence[Cleanable],
    config: LogConfig,
    *,
    cleaned_up_to: int,
    start_offset: int,
    end_offset: int,
    safe_up_to: int,
    now_ms: int,
) -> CleaningPlan:
    """Return the range between the cleaned offsets and the first offset that must not be cleaned yet.

    `safe_up_to` bounds it: what is not forced to the disk, or belongs to an open transaction, is left alone. So are the
    active segment and, with `min.compaction.lag.ms`, whatever has a younger record.
    """
    first_dirty = cleaned_up_to if start_offset <= cleaned_up_to <= end_offset else start_offset
    bases = [segment.base_offset for segment in segments]
    stop = 0
    while stop + 1 < len(segments) and bases[stop + 1] <= safe_up_to:
        young = config.min_compaction_lag_ms > 0 and bases[stop + 1] > first_dirty
        if young and segments[stop].largest_timestamp() > now_ms - config.min_compaction_lag_ms:
            break
        stop += 1
    dirty = min(max(bisect_right(bases, first_dirty) - 1, 0), stop)
    return CleaningPlan(
        first_dirty=first_dirty,
        upper_bound=bases[stop],
        clean_bytes=sum(segment.size for segment in segments[:dirty]),
        dirty_bytes=sum(segment.size for segment in segments[dirty:stop]),
        overdue=any(is_overdue(segment, config, now_ms) for segment in segments[dirty:stop]),
    )


def is_overdue(segment: Cleanable, config: LogConfig, now_ms: int) -> bool:
    """Return True if the first record of the segment should have been compacted by now."""
    if config.max_compaction_lag_ms == INT64_MAX:
        return False
    first = segment.first_timestamp()
    return 0 < first < now_ms - config.max_compaction_lag_ms


class Extent(NamedTuple):
    """A segment file as it was when a cleaning began."""

    base_offset: int
    next_offset: int
    """The base offset of the following segment."""
    size: int
    index_bytes: int
    """The size of the larger of its indexes."""


def group_extents(extents: Sequence[Extent], config: LogConfig) -> list[list[Extent]]:
    """Neighbours that together are no larger than one segment may be: each group becomes one."""
    found: list[list[Extent]] = []
    for extent in extents:
        group = found[-1] if found else None
        if group is not None and can_join_group(group, extent, config):
            group.append(extent)
        else:
            found.append([extent])
    return found


def can_join_group(group: list[Extent], extent: Extent, config: LogConfig) -> bool:
    """Return True if one more segment fits into a group; relative offsets in a segment have 31 bits."""
    return (
        sum(one.size for one in group) + extent.size <= config.segment_bytes
        and sum(one.index_bytes for one in group) + extent.index_bytes <= config.segment_index_bytes
        and extent.next_offset - 1 - group[0].base_offset <= INT32_MAX
    )
