"""The records of committed offsets, after a group of either kind has accepted the commit."""

from __future__ import annotations

from ottla.coordination.groups.events import OffsetsCommitted, TransactionalOffsetsCommitted
from ottla.coordination.offsets.pending import PendingRecord
from ottla.coordination.offsets.records import OffsetRecord


def commit_records(event: OffsetsCommitted) -> tuple[OffsetRecord, ...]:
    expires_ms = event.wall_ms + event.retention_ms if event.retention_ms >= 0 else -1
    return tuple(
        OffsetRecord.of(event.group, partition, committed, event.wall_ms, expires_ms)
        for partition, committed in event.offsets.items()
    )


def pending_records(event: TransactionalOffsetsCommitted) -> tuple[PendingRecord, ...]:
    """Return records that take effect when the transaction commits."""
    return tuple(
        PendingRecord(
            event.producer_id,
            event.producer_epoch,
            OffsetRecord.of(event.group, partition, committed, event.wall_ms, -1),
        )
        for partition, committed in event.offsets.items()
    )
