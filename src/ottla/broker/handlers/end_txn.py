"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from functools import partial

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import ask
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
            node.partitions.complaints.tell(
                f"the transaction of {request.transactional_id!r} cannot be ended: {answer}"
            )
            return EndTxnResponse(error_code=coordinator_error(answer.code))
        if answer.code:
            return EndTxnResponse(error_code=known_error(answer.code, fenced=call.version >= FENCED_SINCE))
        return EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)

    about = (request.transactional_id, request.producer_id, request.producer_epoch)
    version = V2 if call.version >= V2_SINCE else 0
    end = partial(node.transactions.end, *about, commit=request.committed, version=version)
    return ask(call, lambda later: end(later=later), response)


def coordinator_error(code: int) -> int:
    """What a client is told that makes it try again, where the fault is the coordinator's."""
    passed_on = (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,  # which is for a person
    )
    return code if code in passed_on else ErrorCode.COORDINATOR_NOT_AVAILABLE


def known_error(code: int, *, fenced: bool) -> int:
    """The code as older clients know it."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED and not fenced else code
