"""Calls to the transaction coordinator, with responses that may have to wait until its records are committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.state_machines.runtime import PendingReply
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.transaction_coordinator import Later
    from ottla.broker.node import BrokerNode

T = TypeVar("T")
MOVES = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
PASSED_ON = (
    *MOVES,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # the code that shows a defect to the user
)


def submit(
    call: Call, question: Callable[[Later], T | PendingReply], response: Callable[[T | KafkaError], Message]
) -> Message | Outcome:
    """Return the response that `response` makes of the coordinator's result or error, now or later."""
    outcome = run_call(question, lambda word: call.answer(response(word)))
    return Outcome.LATER if isinstance(outcome, PendingReply) else response(outcome)


def run_call(
    question: Callable[[Later], T | PendingReply], later: Callable[[Any], None]
) -> T | KafkaError | PendingReply:
    """Return the coordinator's result or its error. If it is `PendingReply`, `later` will be called with one of them."""
    try:
        return question(later)
    except KafkaError as error:
        return error


def find_fault(node: BrokerNode, what: str, error: KafkaError) -> int:
    """Return a retriable error code for a fault of the coordinator; the cause is logged.

    A coordinator that has moved or is loading is not logged: each restart of a broker causes that, and clients find the
    new one.
    """
    if error.code not in MOVES:
        node.partitions.complaints.log(f"{what}: {error}")
    return coordinator_error(error.code)


def coordinator_error(code: int) -> int:
    """Return a code that makes clients retry a fault of the coordinator."""
    return code if code in PASSED_ON else ErrorCode.COORDINATOR_NOT_AVAILABLE


def map_error(code: int, *, fenced: bool) -> int:
    """Return the code for a version of the client: older ones do not know PRODUCER_FENCED."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED and not fenced else code
