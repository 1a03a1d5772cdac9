"""Encode and decode subscriptions and assignments, the contents of JoinGroup and SyncGroup."""

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
    """Encode a subscription. Equal subscriptions give equal bytes, so that a returning static member appears unchanged."""
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=group_by_topic(sorted(subscription.owned_partitions)),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return encode(message, version)


def decode_subscription(data: Buffer, group_instance_id: str | None = None) -> Subscription:
    """Decode a member's subscription. Raises MalformedError."""
    message = decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(message.topics),
        user_data=message.user_data,
        owned_partitions=tuple(flatten_topics(message.owned_partitions)),
        generation_id=max(-1, message.generation_id),
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment, version: int | None = None) -> bytes:
    """Encode an assignment with topics in order."""
    message = ConsumerProtocolAssignment(group_by_topic(sorted(assignment.partitions)), assignment.user_data)
    return encode(message, version)


def decode_assignment(data: Buffer) -> Assignment:
    """Decode an assignment. Empty data is an empty assignment, for example of a member that the leader omitted."""
    if not len(data):
        return Assignment()
    message = decode(ConsumerProtocolAssignment, data)
    return Assignment(tuple(flatten_topics(message.assigned_partitions)), message.user_data)


def group_by_topic(partitions: Iterable[TopicPartition]) -> list[TopicIndexes]:
    """Group partitions by topic, in the order of first appearance."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [TopicIndexes(topic, numbers) for topic, numbers in topics.items()]


def flatten_topics(topics: Iterable[TopicIndexes]) -> list[TopicPartition]:
    return [TopicPartition(part.topic, number) for part in topics for number in part.partitions]
