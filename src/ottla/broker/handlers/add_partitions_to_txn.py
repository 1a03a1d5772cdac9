"""AddPartitionsToTxn: take partitions into a transaction, or say whether they are in it."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence

from ottla.broker.access import denied
from ottla.broker.handlers.end_txn import coordinator_error, known_error
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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

log = logging.getLogger(__name__)

MANY_SINCE = 4
"""From this version on a request is about many transactions."""
FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """All partitions of a transaction, or none: one that does not exist keeps the others out."""
    if call.version >= MANY_SINCE:
        if denied(node, call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(each.transactional_id, results(node, each, fenced=True))
                for each in request.transactions
            ]
        )
    wanted = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )
    if denied(node, call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, wanted.transactional_id):
        codes = dict.fromkeys(topic_partitions(wanted.topics), int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[answered(topic, codes) for topic in wanted.topics]
        )
    refused = {
        topic.name for topic in wanted.topics if denied(node, call, Operation.WRITE, ResourceType.TOPIC, topic.name)
    }
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=results(node, wanted, fenced=call.version >= FENCED_SINCE, refused=refused)
    )


def results(
    node: BrokerNode,
    wanted: AddPartitionsToTxnTransaction,
    *,
    fenced: bool,
    refused: Container[str] = (),
) -> list[AddPartitionsToTxnTopicResult]:
    """What became of each partition; `refused` are topics to which the client may not write."""
    unknown = {
        topic_partition
        for topic_partition in topic_partitions(wanted.topics)
        if node.partitions.find(*topic_partition) is None
    }
    closed = {
        topic_partition
        for topic_partition in topic_partitions(wanted.topics) - unknown
        if is_internal(node, topic_partition)
    }
    closed |= {each for each in topic_partitions(wanted.topics) if each.topic in refused}
    if unknown or closed:
        codes = dict.fromkeys(topic_partitions(wanted.topics), int(ErrorCode.OPERATION_NOT_ATTEMPTED))
        codes |= dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        codes |= dict.fromkeys(closed, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    else:
        codes = dict.fromkeys(topic_partitions(wanted.topics), known_error(code_for(node, wanted), fenced=fenced))
    return [answered(topic, codes) for topic in wanted.topics]


def is_internal(node: BrokerNode, topic_partition: TopicPartition) -> bool:
    """Whether only the broker writes there."""
    partition = node.partitions.find(*topic_partition)
    return partition is not None and partition.internal


def code_for(node: BrokerNode, wanted: AddPartitionsToTxnTransaction) -> int:
    if not wanted.transactional_id:
        return ErrorCode.INVALID_REQUEST
    partitions = frozenset(topic_partitions(wanted.topics))
    about = (wanted.transactional_id, wanted.producer_id, wanted.producer_epoch)
    try:
        if wanted.verify_only:
            return node.transactions.error_in(*about, partitions)
        return node.transactions.add(*about, partitions, version=0)
    except KafkaError as error:
        node.partitions.complaints.tell(f"the transaction of {wanted.transactional_id!r} cannot grow: {error}")
        return coordinator_error(error.code)


def topic_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> set[TopicPartition]:
    """Every partition that is named."""
    return {TopicPartition(topic.name, index) for topic in topics for index in topic.partitions}


def answered(topic: AddPartitionsToTxnTopic, codes: dict[TopicPartition, int]) -> AddPartitionsToTxnTopicResult:
    """The results of a topic, in the order of the request."""
    found: Sequence[AddPartitionsToTxnPartitionResult] = [
        AddPartitionsToTxnPartitionResult(index, codes[TopicPartition(topic.name, index)]) for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(topic.name, found)
