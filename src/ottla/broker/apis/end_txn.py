"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from functools import partial

from ottla.broker.apis.transaction_calls import find_fault, map_error, submit
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.transactions.events import Answer
from ottla.coordination.transactions.transaction import V2
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.schema import Message

FENCED_SINCE = 2
"""From this version on clients know PRODUCER_FENCED."""
V2_SINCE = 5
"""From this version on each transaction has an epoch of its own (KIP-890)."""


def handle(node: BrokerNode, call: Call, request: EndTxnRequest) -> Message | Outcome:
    """Commit or abort the transaction, and return once its markers are written.

    Markers for other brokers, or after a disk failure, may be written later.
    """
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def response(answer: Answer | KafkaError) -> EndTxnResponse:
        if isinstance(answer, KafkaError):
            what = f"the transaction of {request.transactional_id!r} cannot be ended"
            return EndTxnResponse(error_code=find_fault(node, what, answer))
        if answer.code:
            return EndTxnResponse(error_code=map_error(answer.code, fenced=call.version >= FENCED_SINCE))
        return EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)

    about = (request.transactional_id, request.producer_id, request.producer_epoch)
    version = V2 if call.version >= V2_SINCE else 0
    end = partial(node.transactions.end_transaction, *about, commit=request.committed, version=version)
    return submit(call, lambda later: end(later=later), response)
