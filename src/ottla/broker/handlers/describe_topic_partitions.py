"""DescribeTopicPartitions: topics in order of their names, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.access import denied
from ottla.broker.handlers.metadata import facts_of, place_of, seen, topic_operations
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic import PartitionState, Topic
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
"""On one page, whatever the client asks; Kafka's `max.request.partition.size.limit`."""


def handle(node: BrokerNode, call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """The page that begins at the cursor."""
    start = request.cursor or Cursor()
    named = {topic.name for topic in request.topics}
    is_elsewhere = bool(named) and request.cursor is not None and start.topic_name not in named
    if start.partition_index < 0 or is_elsewhere:
        return refused(request)
    refused_names = [name for name in named if denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)]
    named = named.difference(refused_names) if named else {topic.name for topic in seen(node, call, node.topics.all())}
    names = sorted(name for name in named if name >= start.topic_name)
    response = page(node, call, names, start, max(min(request.response_partition_limit, MOST_PARTITIONS), 1))
    if refused_names:
        response.topics = [*response.topics, *map(denied_topic, sorted(refused_names))]
    return response


def denied_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    """The answer about what the client may not know of, be it there or not."""
    return DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)


def page(
    node: BrokerNode, call: Call, names: Sequence[str], start: Cursor, room: int
) -> DescribeTopicPartitionsResponse:
    """As many partitions as there is room for, and where to go on."""
    response = DescribeTopicPartitionsResponse(topics=(topics := []))
    for name in names:
        if not room:
            response.next_cursor = Cursor(name, 0)
            break
        topic = node.topics.named(name)
        if topic is None:
            error = node.topics.name_error(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            operations = topic_operations(node, call, name)
            topics.append(DescribeTopicPartitionsResponseTopic(error, name, topic_authorized_operations=operations))
            continue
        first = start.partition_index if name == start.topic_name else 0
        states = topic.partitions[first : first + room]
        topics.append(described(topic, states, topic_operations(node, call, name)))
        room -= len(states)
        if first + len(states) < len(topic.partitions):
            response.next_cursor = Cursor(name, first + len(states))
            break
    return response


def described(topic: Topic, states: Sequence[PartitionState], operations: int) -> DescribeTopicPartitionsResponseTopic:
    """A topic with some of its partitions."""
    return DescribeTopicPartitionsResponseTopic(
        **facts_of(topic),
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                **place_of(state), eligible_leader_replicas=state.elr, last_known_elr=state.last_known_elr
            )
            for state in states
        ],
        topic_authorized_operations=operations,
    )


def refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """The answer to a cursor that points nowhere."""
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name) for topic in request.topics]
    )
