"""Deletion of offsets that are expired or deleted by request, and of groups without members and offsets (KIP-211)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ottla.coordination.groups.classic.group import CONSUMER, ClassicGroup, ClassicGroupState
from ottla.coordination.groups.streams.group import PROTOCOL as STREAMS
from ottla.coordination.offsets.records import OffsetCommitValue, OffsetRecord
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

Committed = Mapping[TopicPartition, OffsetCommitValue]


def delete_error(group: ClassicGroup | None, offsets: Committed) -> int:
    """Return the error for deleting a group."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is ClassicGroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> Iterator[OffsetRecord]:
    """Return the records that delete single offsets."""
    return (OffsetRecord.tombstone(group_id, partition) for partition in partitions)


def offset_delete_error(group: ClassicGroup | None) -> int:
    """Return the error that applies to every partition of an OffsetDelete: only for consumer groups and streams groups it is known which topics are read."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    # The metadata of other protocols, such as Kafka Connect's, does not show which topics are read.
    open_to_all = group.state is ClassicGroupState.EMPTY or group.protocol_type in (CONSUMER, STREAMS)
    return ErrorCode.NONE if open_to_all else ErrorCode.NON_EMPTY_GROUP


def subscription_errors(group: ClassicGroup, partitions: Sequence[TopicPartition]) -> list[int]:
    """Return an error code for each partition: an offset of a subscribed topic is not deleted."""
    return [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_reading(group, partition.topic) else ErrorCode.NONE
        for partition in partitions
    ]


def is_reading(group: ClassicGroup, topic: str) -> bool:
    """Return True if the group has members and they read `topic`."""
    return group.state is not ClassicGroupState.EMPTY and group.can_read(topic)


def expired_offsets(group: ClassicGroup, offsets: Committed, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Return the expired offsets: of a group without members, or of topics that its members no longer read."""
    since = expiration_start(group)
    if since is None:
        return []
    return [
        partition
        for partition, value in offsets.items()
        if not is_reading(group, partition.topic) and is_expired(value, since(value), now_ms, retention_ms)
    ]


def expiration_start(group: ClassicGroup) -> Callable[[OffsetCommitValue], int] | None:
    """Return the function from an offset to the time from which its age counts, in ms; None if offsets do not expire (KIP-211)."""
    if group.state is ClassicGroupState.EMPTY:
        # The age counts from when the group became empty, if that is known: older offsets were in use until then (KIP-211).
        if group.protocol_type and group.changed_ms >= 0:
            return lambda value: max(group.changed_ms, value.commit_timestamp)
        return lambda value: value.commit_timestamp
    # The group has members. Offsets of topics that they no longer read expire; during a rebalance these topics are unknown.
    if group.state is ClassicGroupState.STABLE and group.topics is not None:
        return lambda value: value.commit_timestamp
    return None


def is_expired(value: OffsetCommitValue, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    """Return True if an offset is expired; a commit may have its own expiry time."""
    if value.expire_timestamp >= 0:
        return now_ms >= value.expire_timestamp
    return now_ms - since_ms >= retention_ms
