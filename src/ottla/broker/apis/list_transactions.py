"""ListTransactions: the transactional ids that this broker coordinates."""

from __future__ import annotations

from collections.abc import Collection

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.coordination.regular_expression import MOST_VISITS, TooMuchWork, compiled
from ottla.coordination.regular_syntax import SyntaxFault
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import ResourceType
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.list_transactions import TransactionState as ListedTransaction

TITLES = {state.title for state in TransactionState} | {"PrepareEpochFence", "Dead"}
"""Kafka's names of states; transactions here are never in the last two."""


def handle(node: BrokerNode, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactions that match all filters. Unknown states are returned as such."""
    unknown = [name for name in request.state_filters if name not in TITLES]
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    try:
        pattern = compiled(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except SyntaxFault:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    if pattern is not None:
        pattern.allow(MOST_VISITS)
    now_ms = node.clock.wall_ms()
    try:
        found = [
            ListedTransaction(each.transactional_id, each.producer_id, each.state.title)
            for each in node.transactions.all()
            if (
                node.access is None
                or node.access.can_describe(call, ResourceType.TRANSACTIONAL_ID, each.transactional_id)
            )
            and is_wanted(each, states, producer_ids, request.duration_filter, now_ms)
            and (pattern is None or pattern.matches(each.transactional_id))
        ]
    except TooMuchWork:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def is_wanted(
    transaction: Transaction, states: Collection[str], producer_ids: Collection[int], longer_than_ms: int, now_ms: int
) -> bool:
    """Return True if a transaction passes the filters for states, producers and duration; an empty filter passes everything."""
    if states and transaction.state.title not in states:
        return False
    if producer_ids and transaction.producer_id not in producer_ids:
        return False
    return longer_than_ms < 0 or now_ms - transaction.started_ms > longer_than_ms
