"""What a group forgets: offsets that nobody needs any more, and in the end itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ottla.coordination.groups.classic.group import CONSUMER, ClassicGroup, ClassicGroupState
from ottla.coordination.offsets.records import OffsetCommitValue, OffsetRecord
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

Committed = Mapping[TopicPartition, OffsetCommitValue]


def delete_error(group: ClassicGroup | None, offsets: Committed) -> int:
    """Why a group is not deleted."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is ClassicGroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> Iterator[OffsetRecord]:
    """What takes away single offsets."""
    return (OffsetRecord.tombstone(group_id, partition) for partition in partitions)


def offset_delete_error(group: ClassicGroup | None) -> int:
    """Why no offset of a group may be deleted at all: only of consumers can one tell what they still read."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    # What Kafka Connect's workers or others of their own protocol read cannot be told from their metadata.
    open_to_all = group.state is ClassicGroupState.EMPTY or group.protocol_type == CONSUMER
    return ErrorCode.NONE if open_to_all else ErrorCode.NON_EMPTY_GROUP


def subscription_errors(group: ClassicGroup, partitions: Sequence[TopicPartition]) -> list[int]:
    """For each partition, whether the group still reads it."""
    return [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if reads(group, partition.topic) else ErrorCode.NONE
        for partition in partitions
    ]


def reads(group: ClassicGroup, topic: str) -> bool:
    """Whether members are there, and read `topic`."""
    return group.state is not ClassicGroupState.EMPTY and group.may_read(topic)


def expired(group: ClassicGroup, offsets: Committed, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """The offsets that are too old: of a group without members, or for topics that its members do not read."""
    since = start_of_age(group)
    if since is None:
        return []
    return [
        partition
        for partition, value in offsets.items()
        if not reads(group, partition.topic) and is_over(value, since(value), now_ms, retention_ms)
    ]


def start_of_age(group: ClassicGroup) -> Callable[[OffsetCommitValue], int] | None:
    """From when an offset's age counts, None where offsets do not age (KIP-211)."""
    if group.state is ClassicGroupState.EMPTY:
        # From when it became empty, where that is known: offsets that are older than that were in use until then
        # (KIP-211).
        if group.protocol_type and group.changed_ms >= 0:
            return lambda value: max(group.changed_ms, value.commit_timestamp)
        return lambda value: value.commit_timestamp
    # Members are there. What they do not read any more ages; in a rebalance nobody knows what they read.
    if group.state is ClassicGroupState.STABLE and group.topics is not None:
        return lambda value: value.commit_timestamp
    return None


def is_over(value: OffsetCommitValue, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    """Whether one offset's time is over; a commit may have said itself when that is."""
    if value.expire_timestamp >= 0:
        return now_ms >= value.expire_timestamp
    return now_ms - since_ms >= retention_ms
