"""CreateTopics: make topics, or say whether they could be made."""

from __future__ import annotations

from ottla.broker.access import denied, may_create
from ottla.broker.mutations import TOO_MANY, may_change
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(node: BrokerNode, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """When the answer is there the topics are, so the request's timeout is never reached."""
    denials: list[CreatableTopic] = []
    allowed: list[CreatableTopic] = []
    for topic in request.topics:
        (allowed if may_create(node, call, topic.name) else denials).append(topic)
    late: list[CreatableTopicResult] = []
    if node.quotas is not None and not request.validate_only:
        wanted, allowed = allowed, []
        for topic in wanted:
            if may_change(node, call, max(topic.num_partitions, 1)):
                allowed.append(topic)
            else:
                late.append(too_many(topic.name))
    try:
        results = node.topics.create(allowed, validate_only=request.validate_only) if allowed else []
    except KafkaError as error:
        results = [
            CreatableTopicResult(topic.name, error_code=error.code, error_message=error.reason) for topic in allowed
        ]
    for result in results:
        if denied(node, call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name):
            hide_configs(result)
    return CreateTopicsResponse(topics=[*results, *late, *map(refused, denials)])


def too_many(name: str) -> CreatableTopicResult:
    """The answer to who changes more than its limit lets it."""
    code, message = ErrorCode.THROTTLING_QUOTA_EXCEEDED, TOO_MANY
    return CreatableTopicResult(name, error_code=code, error_message=message)


def hide_configs(result: CreatableTopicResult) -> None:
    """Tell nothing of how the topic is set to who may not ask."""
    if not result.error_code:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        result.configs = None


def refused(topic: CreatableTopic) -> CreatableTopicResult:
    """The answer to who may not make that topic, be it there or not."""
    message = f"CREATE is allowed neither on the cluster nor on topic {topic.name!r}"
    return CreatableTopicResult(topic.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message)
