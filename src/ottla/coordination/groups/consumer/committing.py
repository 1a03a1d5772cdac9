"""Checks of commits and fetches of offsets of a consumer group.

Members need a valid epoch; any client may commit if there are no members.
"""

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
TRANSACTIONAL_EPOCHS_SINCE = 6
"""The same for TxnOffsetCommit (KIP-1319)."""


def commit_error(group: ConsumerGroup, image: TopicImage, event: OffsetsCommitted) -> int:
    """Return the error for OffsetCommit."""
    if event.generation < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and event.version < EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return epoch_error(member, event.generation, image, event.offsets)


def transactional_commit_error(group: ConsumerGroup, image: TopicImage, event: TransactionalOffsetsCommitted) -> int:
    """Return the error for TxnOffsetCommit. Producers before KIP-447 claim no membership."""
    if event.generation < 0 and (not group.members or (not event.member_id and event.instance_id is None)):
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = epoch_error(member, event.generation, image, event.offsets)
    # Older producers know epochs as generations, of whichever protocol the member is for which they commit.
    return ErrorCode.ILLEGAL_GENERATION if error and event.version < TRANSACTIONAL_EPOCHS_SINCE else error


def fetch_error(group: ConsumerGroup, member_id: str | None, epoch: int) -> int:
    """Return the error for OffsetFetch. A client that claims no membership may fetch."""
    if not member_id and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else wrong_epoch_error(member)


def epoch_error(member: ConsumerMember, epoch: int, image: TopicImage, partitions: Iterable[TopicPartition]) -> int:
    """Return the error for a commit in this epoch.

    A member may use its own epoch, or an earlier one for partitions that it has had since (KIP-1251).
    """
    if epoch == member.epoch:
        return ErrorCode.NONE
    if 0 <= epoch < member.epoch and all(has_had_since(member, epoch, image, each) for each in partitions):
        return ErrorCode.NONE
    return wrong_epoch_error(member)


def has_had_since(member: ConsumerMember, epoch: int, image: TopicImage, partition: TopicPartition) -> bool:
    """Return True if the member had the partition in that epoch already and still has it."""
    topic = image.topics.get(partition.topic)
    if topic is None:
        return False
    topic_id_partition = topic.topic_id, partition.partition
    given = member.assigned.get(topic_id_partition, member.revoking.get(topic_id_partition))
    return given is not None and given <= epoch


def wrong_epoch_error(member: ConsumerMember) -> int:
    """Return the error for a wrong epoch in the member's protocol."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
