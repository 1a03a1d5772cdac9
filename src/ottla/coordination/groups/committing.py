"""OffsetCommit: who may say how far a group has read, and what is kept of it."""

from __future__ import annotations

from ottla.coordination.groups.events import OffsetsCommitted, OffsetsPromised
from ottla.coordination.groups.group import Group
from ottla.coordination.groups.records import Record
from ottla.coordination.groups.state import State
from ottla.coordination.groups.validation import generation_error
from ottla.coordination.offsets.pending import PendingRecord
from ottla.coordination.offsets.records import OffsetRecord
from ottla.errors import ErrorCode


def commit_error(group: Group | None, event: OffsetsCommitted) -> int:
    """Why these offsets are not kept. A group without members is open to everybody who claims no generation."""
    if event.generation < 0 and (group is None or group.state is State.EMPTY):
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.ILLEGAL_GENERATION
    if event.generation < 0 and not event.member_id and event.instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = generation_error(group, event.generation, event.member_id, event.instance_id)
    if not error and group.state is State.COMPLETING_REBALANCE:
        # It is in this generation already, and read what it commits in the last one.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def promise_error(group: Group | None, event: OffsetsPromised) -> int:
    """Why these offsets may not be part of a transaction. Producers of before KIP-447 claim no membership."""
    if event.generation < 0 and not event.member_id and event.instance_id is None:
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.NONE if event.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if event.generation < 0 and group.state is State.EMPTY:
        return ErrorCode.NONE
    return generation_error(group, event.generation, event.member_id, event.instance_id)


def promised_records(event: OffsetsPromised) -> tuple[Record, ...]:
    """What is kept until the transaction ends."""
    return tuple(
        PendingRecord(
            event.producer_id,
            event.producer_epoch,
            OffsetRecord.of(event.group, partition, committed, event.wall_ms, -1),
        )
        for partition, committed in event.offsets.items()
    )


def commit_records(event: OffsetsCommitted) -> tuple[Record, ...]:
    """What is kept."""
    expires_ms = event.wall_ms + event.retention_ms if event.retention_ms >= 0 else -1
    return tuple(
        OffsetRecord.of(event.group, partition, committed, event.wall_ms, expires_ms)
        for partition, committed in event.offsets.items()
    )
