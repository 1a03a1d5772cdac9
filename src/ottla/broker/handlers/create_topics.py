"""CreateTopics: make topics, or say whether they could be made."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(node: BrokerNode, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """When the answer is there the topics are, so the request's timeout is never reached."""
    try:
        results = node.topics.create(request.topics, validate_only=request.validate_only)
    except KafkaError as error:
        results = [
            CreatableTopicResult(topic.name, error_code=error.code, error_message=str(error))
            for topic in request.topics
        ]
    return CreateTopicsResponse(topics=results)
