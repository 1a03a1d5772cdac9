"""How a group's committed offsets are asked for, and what the answer says.

Pure: builds and reads messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.metadata.cluster import NO_ID, Cluster
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

LAST_WITH_ONE_GROUP, LAST_WITH_NAMES = 7, 9
PartitionsByTopic = Mapping[str, Sequence[int]]
"""The numbers of partitions, by topic."""


def of_group(group_id: str, topics: PartitionsByTopic, stable: bool) -> OffsetFetchRequest:
    """Ask in the form that brokers since Kafka 0.10 understand."""
    asked = [OffsetFetchRequestTopic(name, numbers) for name, numbers in topics.items()]
    return OffsetFetchRequest(group_id=group_id, topics=asked, require_stable=stable)


def of_member(
    member: ConsumerGroupMetadata, topics: PartitionsByTopic, cluster: Cluster, stable: bool
) -> OffsetFetchRequest:
    """Ask as a member in its epoch (KIP-848), for topics by id where all are known; without an epoch as anybody."""
    asked = [OffsetFetchRequestTopics(name, cluster.topic_id(name), numbers) for name, numbers in topics.items()]
    group = OffsetFetchRequestGroup(member.group_id, member.member_id or None, member.generation_id, asked)
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def newest(request: OffsetFetchRequest) -> int | None:
    """The newest version that can carry it; None: any."""
    if not request.groups:
        return LAST_WITH_ONE_GROUP
    asked = request.groups[0].topics or ()
    return LAST_WITH_NAMES if any(topic.topic_id == NO_ID for topic in asked) else None


def read_answer(answer: Any, cluster: Cluster) -> tuple[int, dict[TopicPartition, Any]]:
    """The first error, and what is said of each partition."""
    group = answer.groups[0] if answer.groups else answer
    parts = {
        TopicPartition(name_of(topic, cluster), p.partition_index): p
        for topic in group.topics
        for p in topic.partitions
    }
    code = group.error_code or next((p.error_code for p in parts.values() if p.error_code), 0)
    return code, parts


def name_of(topic: Any, cluster: Cluster) -> str:
    """What a topic is called that may be told by its id alone."""
    name: str = topic.name or cluster.names.get(topic.topic_id, "")
    return name
