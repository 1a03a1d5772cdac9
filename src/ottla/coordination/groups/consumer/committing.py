"""Who may commit and fetch offsets of a consumer group: members in their epoch, anybody while it has no members."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import ConsumerMember
from ottla.coordination.groups.events import OffsetsCommitted, TransactionalOffsetsCommitted
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

EPOCHS_SINCE = 9
"""From this version of OffsetCommit on a client knows what STALE_MEMBER_EPOCH means."""


def commit_error(group: ConsumerGroup, image: TopicImage, event: OffsetsCommitted) -> int:
    """Why these offsets are not kept."""
    if event.generation < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and event.version < EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return epoch_error(member, event.generation, image, event.offsets)


def transactional_commit_error(group: ConsumerGroup, image: TopicImage, event: TransactionalOffsetsCommitted) -> int:
    """Why these may not be part of a transaction. Producers of before KIP-447 claim no membership."""
    if event.generation < 0 and (not group.members or (not event.member_id and event.instance_id is None)):
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    # Producers know epochs as generations, of whichever protocol the member is for which they commit.
    is_stale = epoch_error(member, event.generation, image, event.offsets)
    return ErrorCode.ILLEGAL_GENERATION if is_stale else ErrorCode.NONE


def fetch_error(group: ConsumerGroup, member_id: str | None, epoch: int) -> int:
    """Why a member is not told offsets; who claims no membership is told them."""
    if not member_id and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else stale(member)


def epoch_error(member: ConsumerMember, epoch: int, image: TopicImage, partitions: Iterable[TopicPartition]) -> int:
    """Whether a member may commit in this epoch: in its own, and in an earlier one what it has had since (KIP-1251)."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    if 0 <= epoch < member.epoch and all(had_since(member, epoch, image, each) for each in partitions):
        return ErrorCode.NONE
    return stale(member)


def had_since(member: ConsumerMember, epoch: int, image: TopicImage, partition: TopicPartition) -> bool:
    """Whether a partition is the member's, and was in that epoch already."""
    topic = image.topics.get(partition.topic)
    if topic is None:
        return False
    topic_id_partition = topic.topic_id, partition.partition
    given = member.assigned.get(topic_id_partition, member.revoking.get(topic_id_partition))
    return given is not None and given <= epoch


def stale(member: ConsumerMember) -> int:
    """What a member of its protocol knows for another epoch than its own."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
