"""TxnOffsetCommit: keep how far a group has read, once the transaction commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.access import denied
from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS
from ottla.broker.cluster.topics import partition_of_key
from ottla.broker.group_calls import ask
from ottla.broker.handlers.offset_commit import commit_error, is_too_much, partition_error
from ottla.broker.machines.runtime import Pending
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import coordinator_error, known_error
from ottla.broker.transactional_write import UNASKED
from ottla.coordination.groups.events import TransactionalOffsetsCommitted
from ottla.errors import ErrorCode, KafkaError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.elsewhere import Verdicts

ADDS_SINCE = 5
"""From this version on the broker takes the group's offsets into the transaction (KIP-890)."""


def handle(node: BrokerNode, call: Call, request: TxnOffsetCommitRequest) -> Message | Outcome:
    """Promise what can be promised; an error for each partition that cannot."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    errors = [check_topic(node, call, topic, offsets) for topic in request.topics]

    def response(error: int) -> TxnOffsetCommitResponse:
        error = commit_error(error)
        topics = zip(request.topics, errors, strict=True)
        return TxnOffsetCommitResponse(
            topics=[answered(topic, [code or error for code in codes]) for topic, codes in topics]
        )

    def event(ticket: int) -> TransactionalOffsetsCommitted:
        return TransactionalOffsetsCommitted(
            ticket,
            request.group_id,
            offsets,
            request.producer_id,
            request.producer_epoch,
            node.clock.wall_ms(),
            request.generation_id,
            request.member_id,
            request.group_instance_id,
        )

    if is_too_much(node, request.group_id, offsets):
        return response(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)

    def promise(error: int) -> Message | Outcome:
        if error or not offsets:
            return response(error)
        return ask(node, call, request.group_id, event, response)

    if node.coordinators is None:
        return promise(transaction_error(node, call.version, request))
    return ask_elsewhere(node, call, request, promise)


def ask_elsewhere(
    node: BrokerNode, call: Call, request: TxnOffsetCommitRequest, promise: Callable[[int], Message | Outcome]
) -> Message | Outcome:
    """Have the coordinator of the transaction, at another broker, say whether it has the group's offsets, or take them in."""
    from ottla.broker.coordinators.elsewhere import Inquiry

    assert node.coordinators is not None
    topic = node.topics.named(CONSUMER_OFFSETS)
    if topic is None:
        return promise(ErrorCode.NOT_COORDINATOR)
    place = partition_of_key(topic, request.group_id)
    about = (request.transactional_id, request.producer_id, request.producer_epoch)

    def go_on(verdicts: Verdicts) -> None:
        call.resume(lambda: promise(verdict_error(verdicts[place], call.version)))

    asked = node.coordinators.ask(Inquiry(*about, frozenset({place}), call.version < ADDS_SINCE, go_on))
    return Outcome.LATER if asked else promise(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def verdict_error(code: int, version: int) -> int:
    """A coordinator's word as those who commit offsets know it."""
    if code in UNASKED:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ADDS_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return known_error(code, fenced=False)


def transaction_error(node: BrokerNode, version: int, request: TxnOffsetCommitRequest) -> int:
    """Why this producer may not promise anything."""
    about = (request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        places = frozenset({node.transactions.offsets_partition(request.group_id)})
        word = node.transactions.take_part(*about, places, verify_only=version < ADDS_SINCE)
    except KafkaError as error:
        return coordinator_error(error.code)
    assert not isinstance(word, Pending), "there are no copies to wait for"
    # Clients of before KIP-890 do not know that a transaction can be aborted and begun anew.
    if word == ErrorCode.TRANSACTION_ABORTABLE and version < ADDS_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return known_error(word, fenced=False)


def check_topic(
    node: BrokerNode, call: Call, topic: TxnOffsetCommitRequestTopic, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> list[int]:
    """Gather what may be promised; one error code, or NONE, for each partition."""
    if denied(node, call, Operation.READ, ResourceType.TOPIC, topic.name):
        return [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
    codes = [partition_error(node, topic.name, wanted) for wanted in topic.partitions]
    for wanted, code in zip(topic.partitions, codes, strict=True):
        if not code:
            offsets[TopicPartition(topic.name, wanted.partition_index)] = OffsetAndMetadata(
                wanted.committed_offset, wanted.committed_metadata or "", wanted.committed_leader_epoch
            )
    return codes


def answered(topic: TxnOffsetCommitRequestTopic, codes: Sequence[int]) -> TxnOffsetCommitResponseTopic:
    """The answer for one topic, with a code for each partition."""
    partitions = [
        TxnOffsetCommitResponsePartition(wanted.partition_index, code)
        for wanted, code in zip(topic.partitions, codes, strict=True)
    ]
    return TxnOffsetCommitResponseTopic(topic.name, partitions)
