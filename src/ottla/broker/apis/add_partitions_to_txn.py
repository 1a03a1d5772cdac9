"""AddPartitionsToTxn: add partitions to a transaction, or verify that it has them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import Any

from ottla.broker.apis.transaction_calls import find_fault, map_error, run_call
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.state_machines.runtime import PendingReply
from ottla.coordination.transactions.transaction import V2
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.schema import Message

Codes = dict[TopicPartition, int]
MANY_SINCE = 4
"""From this version on a request is a broker's, and has several transactions."""
FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddPartitionsToTxnRequest) -> Message | Outcome:
    """Add all partitions of a transaction, or none if one of them is rejected."""
    if call.version < MANY_SINCE:
        return handle_single(node, call, request)
    if lacks_permission(node, call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return handle_batch(node, call, request.transactions)


def handle_single(node: BrokerNode, call: Call, request: AddPartitionsToTxnRequest) -> Message | Outcome:
    """Handle a client's request about its own transaction. The response has a code for each partition."""
    wanted = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )

    def response(codes: Codes) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[build_topic_result(each, codes) for each in wanted.topics]
        )

    if lacks_permission(node, call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, wanted.transactional_id):
        return response(list_codes(wanted, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    refused = {each.name for each in wanted.topics if is_internal(each.name) or is_denied(node, call, each.name)}
    fenced = call.version >= FENCED_SINCE
    codes = check_transaction(
        node, wanted, 0, lambda codes: call.answer(response(codes)), fenced=fenced, refused=refused
    )
    return Outcome.LATER if codes is None else response(codes)


def handle_batch(
    node: BrokerNode, call: Call, transactions: Sequence[AddPartitionsToTxnTransaction]
) -> Message | Outcome:
    """Handle a broker's request on behalf of its producers. Answered once all codes are known."""
    found: dict[int, Codes] = {}

    def response() -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    each.transactional_id, [build_topic_result(topic, found[index]) for topic in each.topics]
                )
                for index, each in enumerate(transactions)
            ]
        )

    def record_codes(index: int, codes: Codes) -> None:
        found[index] = codes
        if len(found) == len(transactions):
            call.answer(response())

    for index, each in enumerate(transactions):
        codes = check_transaction(node, each, V2, partial(record_codes, index), fenced=True)
        if codes is not None:
            found[index] = codes
    return response() if len(found) == len(transactions) else Outcome.LATER


def check_transaction(
    node: BrokerNode,
    wanted: AddPartitionsToTxnTransaction,
    version: int,
    later: Callable[[Codes], None],
    *,
    fenced: bool,
    refused: Container[str] = (),
) -> Codes | None:
    """Return the code of each partition; None if `later` will be called with them.

    The client may not write to topics in `refused`.
    """
    places = topic_partitions(wanted.topics)
    unknown = {each for each in places if not node.topics.has_partition(*each)}
    closed = {each for each in places if each.topic in refused}  # rejected whether the topic exists or not
    if unknown or closed:
        codes = list_codes(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes |= dict.fromkeys(unknown, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return codes | dict.fromkeys(closed, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    def give_all(code: int | KafkaError) -> Codes:
        return list_codes(wanted, map_error(find_code(node, wanted, code), fenced=fenced))

    result = run_call(lambda later: add_or_verify(node, wanted, version, later), lambda code: later(give_all(code)))
    return None if isinstance(result, PendingReply) else give_all(result)


def is_internal(topic: str) -> bool:
    """Return True if only brokers write to the topic."""
    return topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)


def is_denied(node: BrokerNode, call: Call, topic: str) -> bool:
    return lacks_permission(node, call, Operation.WRITE, ResourceType.TOPIC, topic)


def add_or_verify(
    node: BrokerNode, wanted: AddPartitionsToTxnTransaction, version: int, later: Callable[[Any], None]
) -> int | PendingReply:
    if not wanted.transactional_id:
        return ErrorCode.INVALID_REQUEST
    partitions = frozenset(topic_partitions(wanted.topics))
    about = (wanted.transactional_id, wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        return node.transactions.verify_partitions(*about, partitions, later=later)
    return node.transactions.add_partitions(*about, partitions, version=version, later=later)


def find_code(node: BrokerNode, wanted: AddPartitionsToTxnTransaction, code: int | KafkaError) -> int:
    if not isinstance(code, KafkaError):
        return code
    return find_fault(node, f"the transaction of {wanted.transactional_id!r} cannot grow", code)


def list_codes(wanted: AddPartitionsToTxnTransaction, code: int) -> Codes:
    return dict.fromkeys(topic_partitions(wanted.topics), int(code))


def topic_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> set[TopicPartition]:
    """Return all partitions of the request."""
    return {TopicPartition(topic.name, index) for topic in topics for index in topic.partitions}


def build_topic_result(topic: AddPartitionsToTxnTopic, codes: Codes) -> AddPartitionsToTxnTopicResult:
    """Return the results of a topic, in the order of the request."""
    found: Sequence[AddPartitionsToTxnPartitionResult] = [
        AddPartitionsToTxnPartitionResult(index, codes[TopicPartition(topic.name, index)]) for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(topic.name, found)
