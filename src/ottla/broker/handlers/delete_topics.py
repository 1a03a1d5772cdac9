"""DeleteTopics: topics and everything in them, by name or by id."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

log = logging.getLogger(__name__)

STATES_SINCE = 6
"""From this version on a topic may be given by its id."""
DISABLED_SINCE = 3
"""From this version on there is an error code that says it is switched off."""


def handle(node: BrokerNode, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """When the answer is there the topics are gone."""
    unwanted: Sequence[DeleteTopicState] = request.topics
    if call.version < STATES_SINCE:
        unwanted = [DeleteTopicState(name) for name in request.topic_names]
    if not node.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= DISABLED_SINCE else ErrorCode.INVALID_REQUEST
        return refused(unwanted, code, "the broker's setting delete.topic.enable is false")
    try:
        results = node.topics.delete(unwanted)
    except KafkaError as error:
        return refused(unwanted, error.code, str(error))
    forget_offsets(node, [result.name for result in results if result.name and not result.error_code])
    return DeleteTopicsResponse(responses=results)


def forget_offsets(node: BrokerNode, deleted: list[str]) -> None:
    """Have groups begin anew in a topic of the same name; the topics are gone even where that cannot be written."""
    try:
        node.groups.topics_deleted(deleted)
        node.transactions.topics_deleted(deleted)
    except KafkaError as error:
        log.error("what groups committed for %s is still there: %s", ", ".join(deleted), error)


def refused(unwanted: Sequence[DeleteTopicState], code: int, message: str) -> DeleteTopicsResponse:
    """The same error for all of them."""
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(topic.name, topic.topic_id, code, message) for topic in unwanted]
    )
