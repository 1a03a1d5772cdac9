"""DescribeTopicPartitions: topics in alphabetical order, one page per response."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.apis.metadata import list_partition_fields, list_topic_fields, list_visible_topics, topic_operations
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MOST_PARTITIONS = 2000
"""The maximum per page, whatever the client requests; Kafka's `max.request.partition.size.limit`."""


def handle(node: BrokerNode, call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Return the page that starts at the cursor."""
    start = request.cursor or Cursor()
    named = {topic.name for topic in request.topics}
    is_elsewhere = bool(named) and request.cursor is not None and start.topic_name not in named
    if start.partition_index < 0 or is_elsewhere:
        return build_error(request)
    refused_names = [
        name for name in named if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]
    named = (
        named.difference(refused_names)
        if named
        else {topic.name for topic in list_visible_topics(node, call, node.topics.all())}
    )
    names = sorted(name for name in named if name >= start.topic_name)
    response = build_page(node, call, names, start, max(min(request.response_partition_limit, MOST_PARTITIONS), 1))
    if refused_names:
        response.topics = [*response.topics, *map(denied_topic, sorted(refused_names))]
    return response


def denied_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    """Return the result for a topic that the client may not describe, whether it exists or not."""
    return DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)


def build_page(
    node: BrokerNode, call: Call, names: Sequence[str], start: Cursor, room: int
) -> DescribeTopicPartitionsResponse:
    """Return as many partitions as the limit allows, and the cursor of the next page."""
    response = DescribeTopicPartitionsResponse(topics=(topics := []))
    for name in names:
        if not room:
            response.next_cursor = Cursor(name, 0)
            break
        topic = node.topics.find_by_name(name)
        if topic is None:
            error = node.topics.name_error(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            operations = topic_operations(node, call, name)
            topics.append(DescribeTopicPartitionsResponseTopic(error, name, topic_authorized_operations=operations))
            continue
        first = start.partition_index if name == start.topic_name else 0
        states = topic.partitions[first : first + room]
        topics.append(describe_topic(topic, states, topic_operations(node, call, name)))
        room -= len(states)
        if first + len(states) < len(topic.partitions):
            response.next_cursor = Cursor(name, first + len(states))
            break
    return response


def describe_topic(
    topic: ClusterTopic, states: Sequence[PartitionState], operations: int
) -> DescribeTopicPartitionsResponseTopic:
    """Return a topic with the partitions of this page."""
    return DescribeTopicPartitionsResponseTopic(
        **list_topic_fields(topic),
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                **list_partition_fields(state), eligible_leader_replicas=state.elr, last_known_elr=state.last_known_elr
            )
            for state in states
        ],
        topic_authorized_operations=operations,
    )


def build_error(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Return the response to an invalid cursor."""
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name) for topic in request.topics]
    )
