"""OffsetFetch requests, and how their responses are read. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.metadata.metadata_snapshot import NO_ID, MetadataSnapshot
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

LAST_WITH_ONE_GROUP, LAST_WITH_NAMES = 7, 9
PartitionsByTopic = Mapping[str, Sequence[int]]
"""Partition numbers by topic."""


def group_request(group_id: str, topics: PartitionsByTopic, stable: bool) -> OffsetFetchRequest:
    """Build a request in the form that brokers understand since Kafka 0.10."""
    requested = [OffsetFetchRequestTopic(name, numbers) for name, numbers in topics.items()]
    return OffsetFetchRequest(group_id=group_id, topics=requested, require_stable=stable)


def member_request(
    member: ConsumerGroupMetadata, topics: PartitionsByTopic, cluster: MetadataSnapshot, stable: bool
) -> OffsetFetchRequest:
    """Build a request of a member with its epoch (KIP-848). Topics are identified by id if all ids are known."""
    requested = [OffsetFetchRequestTopics(name, cluster.topic_id(name), numbers) for name, numbers in topics.items()]
    group = OffsetFetchRequestGroup(member.group_id, member.member_id or None, member.generation_id, requested)
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def max_request_version(request: OffsetFetchRequest) -> int | None:
    """Return the highest version that can carry the request; None for any."""
    if not request.groups:
        return LAST_WITH_ONE_GROUP
    requested = request.groups[0].topics or ()
    return LAST_WITH_NAMES if any(topic.topic_id == NO_ID for topic in requested) else None


def read_response(answer: Any, cluster: MetadataSnapshot) -> tuple[int, dict[TopicPartition, Any]]:
    """Return the first error code, and the response of each partition."""
    group = answer.groups[0] if answer.groups else answer
    parts = {
        TopicPartition(topic_name(topic, cluster), p.partition_index): p
        for topic in group.topics
        for p in topic.partitions
    }
    code = group.error_code or next((p.error_code for p in parts.values() if p.error_code), 0)
    return code, parts


def topic_name(topic: Any, cluster: MetadataSnapshot) -> str:
    """Return the name of a topic, which the response may identify by id only."""
    name: str = topic.name or cluster.names.get(topic.topic_id, "")
    return name
