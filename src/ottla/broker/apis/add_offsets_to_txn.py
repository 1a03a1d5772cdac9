"""AddOffsetsToTxn: add a group's partition of `__consumer_offsets` to a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.apis.transaction_calls import find_fault, map_error, submit
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.transaction_coordinator import Later
    from ottla.broker.state_machines.runtime import PendingReply

FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddOffsetsToTxnRequest) -> Message | Outcome:
    """Add the partition of `__consumer_offsets` that stores the group's offsets."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def add(later: Later) -> int | PendingReply:
        places = frozenset({node.transactions.offsets_partition(request.group_id)})
        about = (request.transactional_id, request.producer_id, request.producer_epoch)
        return node.transactions.add_partitions(*about, places, version=0, later=later)

    def response(code: int | KafkaError) -> AddOffsetsToTxnResponse:
        if isinstance(code, KafkaError):
            code = find_fault(node, f"the offsets of {request.group_id!r} cannot join a transaction", code)
        return AddOffsetsToTxnResponse(error_code=map_error(code, fenced=call.version >= FENCED_SINCE))

    return submit(call, add, response)
