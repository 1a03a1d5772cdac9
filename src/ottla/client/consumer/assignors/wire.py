"""Subscriptions and assignments as the bytes that travel in JoinGroup and SyncGroup."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.consumer.assignors.assignor import Assignment, Subscription
from ottla.model import Buffer, TopicPartition
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode,
    encode,
)
from ottla.protocol.messages.consumer_protocol import (
    TopicPartition as TopicIndexes,
)


def encode_subscription(subscription: Subscription, version: int | None = None) -> bytes:
    """The same subscription gives the same bytes: a static member that comes back unchanged must look so."""
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=by_topic(sorted(subscription.owned_partitions)),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return encode(message, version)


def decode_subscription(data: Buffer, group_instance_id: str | None = None) -> Subscription:
    """A member's subscription; MalformedError where it is none."""
    message = decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(message.topics),
        user_data=message.user_data,
        owned_partitions=tuple(flat(message.owned_partitions)),
        generation_id=max(-1, message.generation_id),
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment, version: int | None = None) -> bytes:
    """An assignment, topics in order."""
    message = ConsumerProtocolAssignment(by_topic(sorted(assignment.partitions)), assignment.user_data)
    return encode(message, version)


def decode_assignment(data: Buffer) -> Assignment:
    """An assignment; nothing at all is an empty one, as of a group whose leader left this member out."""
    if not len(data):
        return Assignment()
    message = decode(ConsumerProtocolAssignment, data)
    return Assignment(tuple(flat(message.assigned_partitions)), message.user_data)


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicIndexes]:
    """Partitions, each topic named once, in the order they come."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [TopicIndexes(topic, numbers) for topic, numbers in topics.items()]


def flat(topics: Iterable[TopicIndexes]) -> list[TopicPartition]:
    return [TopicPartition(part.topic, number) for part in topics for number in part.partitions]
