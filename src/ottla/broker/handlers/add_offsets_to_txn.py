"""AddOffsetsToTxn: take the offsets of a group into a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import ask, fault_of, known_error
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.transaction_coordinator import Later
    from ottla.broker.machines.runtime import Pending

FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddOffsetsToTxnRequest) -> Message | Outcome:
    """The partition of `__consumer_offsets` that has the group takes part in the transaction."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def add(later: Later) -> int | Pending:
        places = frozenset({node.transactions.offsets_partition(request.group_id)})
        about = (request.transactional_id, request.producer_id, request.producer_epoch)
        return node.transactions.add(*about, places, version=0, later=later)

    def response(code: int | KafkaError) -> AddOffsetsToTxnResponse:
        if isinstance(code, KafkaError):
            code = fault_of(node, f"the offsets of {request.group_id!r} cannot join a transaction", code)
        return AddOffsetsToTxnResponse(error_code=known_error(code, fenced=call.version >= FENCED_SINCE))

    return ask(call, add, response)
