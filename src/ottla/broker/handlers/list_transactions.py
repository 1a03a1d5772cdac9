"""ListTransactions: the transactional ids that this broker coordinates."""

from __future__ import annotations

import re

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import ResourceType
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.list_transactions import TransactionState as ListedTransaction

TITLES = {state.title for state in TransactionState} | {"PrepareEpochFence", "Dead"}
"""Kafka's names; the last two are those of states in which no transaction of ours is."""


def handle(node: BrokerNode, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """Those that every filter lets through; a state that does not exist is named as unknown."""
    unknown = [name for name in request.state_filters if name not in TITLES]
    try:
        pattern = re.compile(request.transactional_id_pattern or "")
    except re.error:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    now_ms = node.clock.wall_ms()
    try:
        found = [
            ListedTransaction(each.transactional_id, each.producer_id, each.state.title)
            for each in node.transactions.all()
            if (node.access is None or node.access.sees(call, ResourceType.TRANSACTIONAL_ID, each.transactional_id))
            and is_wanted(each, request, now_ms)
            and (not pattern.pattern or pattern.fullmatch(each.transactional_id))
        ]
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def is_wanted(transaction: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    """Whether state, producer and duration are such as are asked for."""
    if request.state_filters and transaction.state.title not in request.state_filters:
        return False
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    return request.duration_filter < 0 or now_ms - transaction.started_ms > request.duration_filter
