"""Views of partitions: their logs, their high watermark, and the progress of followers."""

from __future__ import annotations

from ottla.broker.introspection.views import PartitionLogView, ReplicaView, SegmentView
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.storage.log import Log
from ottla.storage.segments.segment import Segment

MOST_SEGMENTS = 12


def partition_view(partition: Partition, log: Log, now: float) -> PartitionLogView:
    shown = log.segments[-MOST_SEGMENTS:]
    leadership = partition.leadership
    return PartitionLogView(
        str(partition),
        partition.leads,
        partition.leader_epoch,
        log.start_offset,
        log.high_watermark if log.replicated else log.end_offset,
        log.last_stable_offset,
        log.end_offset,
        log.size_bytes,
        tuple(segment_view(each, each is log.segments[-1]) for each in shown),
        len(log.segments) - len(shown),
        () if leadership is None else replica_views(leadership, now),
    )


def segment_view(segment: Segment, active: bool) -> SegmentView:
    """Return a segment; what it has only in files is not read for this."""
    indexes = segment.indexes
    if not indexes.is_loaded():
        return SegmentView(segment.base_offset, segment.size, active, None, None)
    return SegmentView(segment.base_offset, segment.size, active, len(indexes.offsets), len(indexes.times))


def replica_views(leadership: Leadership, now: float) -> tuple[ReplicaView, ...]:
    machine = leadership.machine
    return tuple(
        ReplicaView(
            broker, copy.end, broker in machine.assignment.in_sync, max(0.0, copy.lag(machine.log_end, now)) * 1000
        )
        for broker, copy in sorted(machine.followers.items())
    )
