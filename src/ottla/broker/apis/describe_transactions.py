"""DescribeTransactions: the states of transactional ids."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.transactions.records import by_topic
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(node: BrokerNode, call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Return one result for each transactional id."""
    return DescribeTransactionsResponse(
        transaction_states=[describe_transaction(node, call, each) for each in dict.fromkeys(request.transactional_ids)]
    )


def describe_transaction(node: BrokerNode, call: Call, transactional_id: str) -> TransactionState:
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return TransactionState(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id)
    if not transactional_id:
        return TransactionState(ErrorCode.INVALID_REQUEST, transactional_id)
    try:
        transaction = node.transactions.find(transactional_id)
    except KafkaError as error:
        unknown = error.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if unknown else error.code
        return TransactionState(code, transactional_id)
    if transaction is None:
        return TransactionState(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(each.topic, each.partition_ids)
            for each in by_topic(transaction.partitions)
            if node.access is None or node.access.can_describe(call, ResourceType.TOPIC, each.topic)
        ],
    )
