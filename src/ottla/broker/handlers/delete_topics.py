"""DeleteTopics: topics and everything in them, by name or by id."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ottla.broker.access import denied
from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.mutations import TOO_MANY, may_change
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
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
    """When the answer is there the topics are gone, for good; their files go beside the loop."""
    unwanted: Sequence[DeleteTopicState] = request.topics
    if call.version < STATES_SINCE:
        unwanted = [DeleteTopicState(name) for name in request.topic_names]
    if not node.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= DISABLED_SINCE else ErrorCode.INVALID_REQUEST
        return refused(unwanted, code, "the broker's setting delete.topic.enable is false")
    verdicts = [(each, denial_of(node, call, each)) for each in unwanted]
    denials = [denial for _, denial in verdicts if denial is not None]
    allowed = [each for each, denial in verdicts if denial is None]
    if node.quotas is not None:
        delays = [(each, late(node, call, each)) for each in allowed]
        denials += [delay for _, delay in delays if delay is not None]
        allowed = [each for each, delay in delays if delay is None]
    try:
        results = node.topics.delete(allowed) if allowed else []
    except KafkaError as error:
        return DeleteTopicsResponse(responses=[*refused(allowed, error.code, error.reason).responses, *denials])
    deleted = [result.name for result in results if result.name and not result.error_code]
    forget_offsets(node, deleted)
    return DeleteTopicsResponse(responses=[*results, *denials])


def late(node: BrokerNode, call: Call, unwanted: DeleteTopicState) -> DeletableTopicResult | None:
    """Why a topic is not deleted now by who changes many."""
    topic = node.topics.with_id(unwanted.topic_id) if unwanted.name is None else node.topics.named(unwanted.name)
    if topic is None or may_change(node, call, len(topic.partitions)):
        return None
    return DeletableTopicResult(unwanted.name, unwanted.topic_id, ErrorCode.THROTTLING_QUOTA_EXCEEDED, TOO_MANY)


def denial_of(node: BrokerNode, call: Call, unwanted: DeleteTopicState) -> DeletableTopicResult | None:
    """Why a client may not delete a topic; the name of one that it gave by its id is told only to who may know of it."""
    name = unwanted.name
    if name is None:
        topic = node.topics.with_id(unwanted.topic_id)
        name = None if topic is None else topic.name
    if name is None or not denied(node, call, Operation.DELETE, ResourceType.TOPIC, name):
        return None
    is_known = not denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)
    if is_known and node.topics.named(name) is None:
        return None  # who may know of it hears that it is not there
    shown = name if is_known else unwanted.name
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeletableTopicResult(shown, unwanted.topic_id, code, not_allowed(shown))


def not_allowed(name: str | None) -> str:
    """Why a topic stays; one that was given by its id may have a name that is not to be told."""
    return f"DELETE is not allowed on {'this topic' if name is None else f'topic {name!r}'}"


def forget_offsets(node: BrokerNode, deleted: list[str]) -> None:
    """Have groups begin anew in a topic of the same name; the topics are gone even where that cannot be written.

    Where nobody ever committed there is nothing to forget: who coordinates need not be loaded for that. Where the topic of
    the coordinator itself is deleted, there was something, and who waits in it is to be sent away.
    """
    try:
        if CONSUMER_OFFSETS in deleted or node.topics.named(CONSUMER_OFFSETS) is not None:
            node.groups.topics_deleted(frozenset(deleted))
        if TRANSACTION_STATE in deleted or node.topics.named(TRANSACTION_STATE) is not None:
            node.transactions.topics_deleted(frozenset(deleted))
    except KafkaError as error:
        log.error("what groups committed for %s is still there: %s", ", ".join(deleted), error)


def refused(unwanted: Sequence[DeleteTopicState], code: int, message: str) -> DeleteTopicsResponse:
    """The same error for all of them."""
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(topic.name, topic.topic_id, code, message) for topic in unwanted]
    )
