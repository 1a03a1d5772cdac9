"""CreatePartitions: give topics more partitions, or say whether they could have them."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.mutations import TOO_MANY, may_change
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(node: BrokerNode, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """When the answer is there the partitions are, so the request's timeout is never reached."""
    refused: list[CreatePartitionsTopic] = []
    late: list[CreatePartitionsTopic] = []
    allowed: list[CreatePartitionsTopic] = []
    for topic in request.topics:
        if denied(node, call, Operation.ALTER, ResourceType.TOPIC, topic.name):
            refused.append(topic)
        elif request.validate_only or may_change(node, call, more_of(node, topic)):
            allowed.append(topic)
        else:
            late.append(topic)
    try:
        results = node.topics.grow(allowed, validate_only=request.validate_only) if allowed else []
    except KafkaError as error:
        results = [CreatePartitionsTopicResult(topic.name, error.code, error.reason) for topic in allowed]
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    denials = [
        CreatePartitionsTopicResult(topic.name, code, f"ALTER is not allowed on topic {topic.name!r}")
        for topic in refused
    ]
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    denials += [CreatePartitionsTopicResult(topic.name, code, TOO_MANY) for topic in late]
    return CreatePartitionsResponse(results=[*results, *denials])


def more_of(node: BrokerNode, wanted: CreatePartitionsTopic) -> int:
    """How many partitions a topic would get."""
    topic = node.topics.named(wanted.name)
    return max(wanted.count - len(topic.partitions), 0) if topic is not None else 0
