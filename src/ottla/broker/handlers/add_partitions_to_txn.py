"""AddPartitionsToTxn: take partitions into a transaction, or say whether they are in it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import Any

from ottla.broker.access import denied
from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.machines.runtime import Pending
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import fault_of, known_error, tell
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
"""From this version on a request is about many transactions."""
FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddPartitionsToTxnRequest) -> Message | Outcome:
    """All partitions of a transaction, or none: one that does not exist keeps the others out."""
    if call.version < MANY_SINCE:
        return of_one(node, call, request)
    if denied(node, call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return of_many(node, call, request.transactions)


def of_one(node: BrokerNode, call: Call, request: AddPartitionsToTxnRequest) -> Message | Outcome:
    """A client asks about its own transaction, and is told of each partition whether it takes part."""
    wanted = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )

    def response(codes: Codes) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[answered(each, codes) for each in wanted.topics]
        )

    if denied(node, call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, wanted.transactional_id):
        return response(of_all(wanted, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    refused = {each.name for each in wanted.topics if is_internal(each.name) or is_denied(node, call, each.name)}
    fenced = call.version >= FENCED_SINCE
    codes = codes_of(node, wanted, 0, lambda codes: call.answer(response(codes)), fenced=fenced, refused=refused)
    return Outcome.LATER if codes is None else response(codes)


def of_many(node: BrokerNode, call: Call, transactions: Sequence[AddPartitionsToTxnTransaction]) -> Message | Outcome:
    """What a broker asks on behalf of those who write to it; answered when all is known."""
    found: dict[int, Codes] = {}

    def response() -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    each.transactional_id, [answered(topic, found[index]) for topic in each.topics]
                )
                for index, each in enumerate(transactions)
            ]
        )

    def note(index: int, codes: Codes) -> None:
        found[index] = codes
        if len(found) == len(transactions):
            call.answer(response())

    for index, each in enumerate(transactions):
        codes = codes_of(node, each, V2, partial(note, index), fenced=True)
        if codes is not None:
            found[index] = codes
    return response() if len(found) == len(transactions) else Outcome.LATER


def codes_of(
    node: BrokerNode,
    wanted: AddPartitionsToTxnTransaction,
    version: int,
    later: Callable[[Codes], None],
    *,
    fenced: bool,
    refused: Container[str] = (),
) -> Codes | None:
    """What became of each partition; None where `later` is told it. `refused` are topics to which the client may not write."""
    places = topic_partitions(wanted.topics)
    unknown = {each for each in places if not node.topics.has(*each)}
    closed = {each for each in places if each.topic in refused}  # whether there is such a topic or not
    if unknown or closed:
        codes = of_all(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes |= dict.fromkeys(unknown, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return codes | dict.fromkeys(closed, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    def all_told(code: int | KafkaError) -> Codes:
        return of_all(wanted, known_error(code_of(node, wanted, code), fenced=fenced))

    told = tell(lambda later: verdict(node, wanted, version, later), lambda code: later(all_told(code)))
    return None if isinstance(told, Pending) else all_told(told)


def is_internal(topic: str) -> bool:
    """Whether only brokers write there."""
    return topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)


def is_denied(node: BrokerNode, call: Call, topic: str) -> bool:
    return denied(node, call, Operation.WRITE, ResourceType.TOPIC, topic)


def verdict(
    node: BrokerNode, wanted: AddPartitionsToTxnTransaction, version: int, later: Callable[[Any], None]
) -> int | Pending:
    if not wanted.transactional_id:
        return ErrorCode.INVALID_REQUEST
    partitions = frozenset(topic_partitions(wanted.topics))
    about = (wanted.transactional_id, wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        return node.transactions.error_in(*about, partitions, later=later)
    return node.transactions.add(*about, partitions, version=version, later=later)


def code_of(node: BrokerNode, wanted: AddPartitionsToTxnTransaction, code: int | KafkaError) -> int:
    if not isinstance(code, KafkaError):
        return code
    return fault_of(node, f"the transaction of {wanted.transactional_id!r} cannot grow", code)


def of_all(wanted: AddPartitionsToTxnTransaction, code: int) -> Codes:
    return dict.fromkeys(topic_partitions(wanted.topics), int(code))


def topic_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> set[TopicPartition]:
    """Every partition that is named."""
    return {TopicPartition(topic.name, index) for topic in topics for index in topic.partitions}


def answered(topic: AddPartitionsToTxnTopic, codes: Codes) -> AddPartitionsToTxnTopicResult:
    """The results of a topic, in the order of the request."""
    found: Sequence[AddPartitionsToTxnPartitionResult] = [
        AddPartitionsToTxnPartitionResult(index, codes[TopicPartition(topic.name, index)]) for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(topic.name, found)
