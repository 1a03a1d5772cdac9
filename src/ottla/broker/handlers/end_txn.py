"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from functools import partial

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import ask, fault_of, known_error
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
    """When the answer is there so are the markers, unless a disk failed or they go to other brokers: then they follow."""
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def response(answer: Answer | KafkaError) -> EndTxnResponse:
        if isinstance(answer, KafkaError):
            what = f"the transaction of {request.transactional_id!r} cannot be ended"
            return EndTxnResponse(error_code=fault_of(node, what, answer))
        if answer.code:
            return EndTxnResponse(error_code=known_error(answer.code, fenced=call.version >= FENCED_SINCE))
        return EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)

    about = (request.transactional_id, request.producer_id, request.producer_epoch)
    version = V2 if call.version >= V2_SINCE else 0
    end = partial(node.transactions.end, *about, commit=request.committed, version=version)
    return ask(call, lambda later: end(later=later), response)
