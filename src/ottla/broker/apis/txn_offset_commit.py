"""TxnOffsetCommit: store offsets of a group, to be committed with the transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.apis.offset_commit import commit_error, is_too_much, partition_error
from ottla.broker.apis.transaction_calls import coordinator_error, map_error
from ottla.broker.apis.transactional_write import UNASKED
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS
from ottla.broker.metadata.topics import find_partition_of_key
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.state_machines.runtime import PendingReply
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
    from ottla.broker.coordinators.remote_coordinators import VerificationCodes

ADDS_SINCE = 5
"""From this version on the broker adds the group's partition to the transaction (KIP-890)."""
IDS_SINCE = 6
"""From this version on topics have ids instead of names (KIP-1319)."""


def handle(node: BrokerNode, call: Call, request: TxnOffsetCommitRequest) -> Message | Outcome:
    """Store the valid offsets as pending; the other partitions have an error."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    errors = [check_topic(node, call, topic, offsets) for topic in request.topics]

    def response(error: int) -> TxnOffsetCommitResponse:
        error = commit_error(error)
        topics = zip(request.topics, errors, strict=True)
        return TxnOffsetCommitResponse(
            topics=[build_topic_result(topic, [code or error for code in codes]) for topic, codes in topics]
        )

    def event(ticket: int) -> TransactionalOffsetsCommitted:
        return TransactionalOffsetsCommitted(
            ticket,
            request.group_id,
            offsets,
            request.producer_id,
            request.producer_epoch,
            node.clock.wall_ms(),
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            call.version,
        )

    if is_too_much(node, request.group_id, offsets):
        return response(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)

    def promise(error: int) -> Message | Outcome:
        if error or not offsets:
            return response(error)
        return submit_to_group(node, call, request.group_id, event, response)

    if node.coordinators is None:
        return promise(transaction_error(node, call.version, request))
    return verify_remotely(node, call, request, promise)


def verify_remotely(
    node: BrokerNode, call: Call, request: TxnOffsetCommitRequest, promise: Callable[[int], Message | Outcome]
) -> Message | Outcome:
    """Have a remote transaction coordinator verify or add the group's partition before the offsets are stored."""
    from ottla.broker.coordinators.remote_coordinators import Verification

    assert node.coordinators is not None
    topic = node.topics.find_by_name(CONSUMER_OFFSETS)
    if topic is None:
        return promise(ErrorCode.NOT_COORDINATOR)
    place = find_partition_of_key(topic, request.group_id)
    about = (request.transactional_id, request.producer_id, request.producer_epoch)

    def continue_verified(verdicts: VerificationCodes) -> None:
        call.resume(lambda: promise(map_verification(verdicts[place], call.version)))

    asked = node.coordinators.verify(
        Verification(*about, frozenset({place}), call.version < ADDS_SINCE, continue_verified)
    )
    return Outcome.LATER if asked else promise(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def map_verification(code: int, version: int) -> int:
    """Return a coordinator's code as clients expect it in TxnOffsetCommit."""
    if code in UNASKED:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ADDS_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return map_error(code, fenced=False)


def transaction_error(node: BrokerNode, version: int, request: TxnOffsetCommitRequest) -> int:
    """Return why this producer may not commit offsets, NONE if it may."""
    about = (request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        places = frozenset({node.transactions.offsets_partition(request.group_id)})
        word = node.transactions.add_or_verify_partitions(*about, places, verify_only=version < ADDS_SINCE)
    except KafkaError as error:
        return coordinator_error(error.code)
    assert not isinstance(word, PendingReply), "without replicas there is nothing to wait for"
    # Clients from before KIP-890 do not know that a transaction can be aborted and started again.
    if word == ErrorCode.TRANSACTION_ABORTABLE and version < ADDS_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return map_error(word, fenced=False)


def check_topic(
    node: BrokerNode, call: Call, topic: TxnOffsetCommitRequestTopic, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> list[int]:
    """Collect the valid offsets in `offsets`. Return an error code, or NONE, for each partition."""
    name = topic.name if call.version < IDS_SINCE else node.topics.name_of(topic.topic_id)
    if name is not None and lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, name):
        return [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
    codes = [partition_error(node, name, wanted) for wanted in topic.partitions]
    for wanted, code in zip(topic.partitions, codes, strict=True):
        if not code:
            assert name is not None
            offsets[TopicPartition(name, wanted.partition_index)] = OffsetAndMetadata(
                wanted.committed_offset, wanted.committed_metadata or "", wanted.committed_leader_epoch
            )
    return codes


def build_topic_result(topic: TxnOffsetCommitRequestTopic, codes: Sequence[int]) -> TxnOffsetCommitResponseTopic:
    """Return the result of one topic, with a code for each partition."""
    partitions = [
        TxnOffsetCommitResponsePartition(wanted.partition_index, code)
        for wanted, code in zip(topic.partitions, codes, strict=True)
    ]
    return TxnOffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)
