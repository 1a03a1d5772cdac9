"""CreatePartitions: give topics more partitions, or say whether they could have them."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(node: BrokerNode, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """When the answer is there the partitions are, so the request's timeout is never reached."""
    try:
        results = node.topics.grow(request.topics, validate_only=request.validate_only)
    except KafkaError as error:
        results = [CreatePartitionsTopicResult(topic.name, error.code, str(error)) for topic in request.topics]
    return CreatePartitionsResponse(results=results)
