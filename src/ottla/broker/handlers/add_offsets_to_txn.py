"""AddOffsetsToTxn: take the offsets of a group into a transaction."""

from __future__ import annotations

import logging

from ottla.broker.handlers.end_txn import coordinator_error, known_error
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

log = logging.getLogger(__name__)

FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """The partition of `__consumer_offsets` that has the group takes part in the transaction."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        topic_partition = node.transactions.offsets_partition(request.group_id)
        code = node.transactions.add(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({topic_partition}),
            version=0,
        )
    except KafkaError as error:
        node.partitions.complaints.tell(f"the offsets of {request.group_id!r} cannot join a transaction: {error}")
        code = coordinator_error(error.code)
    return AddOffsetsToTxnResponse(error_code=known_error(code, fenced=call.version >= FENCED_SINCE))
