"""DeleteTopics: topics and everything in them, by name or by id."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ottla.broker.cluster.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
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


PATIENCE_SECONDS = 10.0
"""How long an answer waits for the files to be gone."""


def handle(node: BrokerNode, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse | Outcome:
    """When the answer is there the topics are gone, and as a rule their files, too."""
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
    deleted = [result.name for result in results if result.name and not result.error_code]
    forget_offsets(node, deleted)
    response = DeleteTopicsResponse(responses=results)
    return later(node, call, response) if deleted and node.partitions.removing else response


def later(node: BrokerNode, call: Call, response: DeleteTopicsResponse) -> Outcome:
    """Answer once the files are gone; where that takes long, they go when nobody waits any more."""
    timer = node.timers.at(node.clock.monotonic() + PATIENCE_SECONDS, lambda: call.answer(response))

    def answer() -> None:
        if timer.callback is not None:
            node.timers.cancel(timer)
            call.answer(response)

    node.partitions.when_removed(answer)
    return Outcome.LATER


def forget_offsets(node: BrokerNode, deleted: list[str]) -> None:
    """Have groups begin anew in a topic of the same name; the topics are gone even where that cannot be written.

    Where nobody ever committed there is nothing to forget: who coordinates need not be loaded for that. Where the topic of
    the coordinator itself is deleted, there was something, and who waits in it is to be sent away.
    """
    try:
        if CONSUMER_OFFSETS in deleted or node.topics.named(CONSUMER_OFFSETS) is not None:
            node.groups.topics_deleted(deleted)
        if TRANSACTION_STATE in deleted or node.topics.named(TRANSACTION_STATE) is not None:
            node.transactions.topics_deleted(deleted)
    except KafkaError as error:
        log.error("what groups committed for %s is still there: %s", ", ".join(deleted), error)


def refused(unwanted: Sequence[DeleteTopicState], code: int, message: str) -> DeleteTopicsResponse:
    """The same error for all of them."""
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(topic.name, topic.topic_id, code, message) for topic in unwanted]
    )
