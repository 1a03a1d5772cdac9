"""Calls to the coordinator of transactions, whose answers may have to wait until what they tell is committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.machines.runtime import Pending
from ottla.broker.requests.call import Call, Outcome
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
    ErrorCode.UNKNOWN_SERVER_ERROR,  # which is for a person
)


def ask(
    call: Call, question: Callable[[Later], T | Pending], response: Callable[[T | KafkaError], Message]
) -> Message | Outcome:
    """The coordinator's word as a response, now or later; `response` makes it of the word, or of the error in its place."""
    told = tell(question, lambda word: call.answer(response(word)))
    return Outcome.LATER if isinstance(told, Pending) else response(told)


def tell(question: Callable[[Later], T | Pending], later: Callable[[Any], None]) -> T | KafkaError | Pending:
    """The coordinator's word, or the error in its place; where it is `Pending`, `later` is told one of them."""
    try:
        return question(later)
    except KafkaError as error:
        return error


def fault_of(node: BrokerNode, what: str, error: KafkaError) -> int:
    """What a client is told of a fault of the coordinator's, so that it tries again; the log says what was not done, and why.

    Of a coordinator that has moved, or is still reading, the log says nothing: each restart of a broker has that, and clients find the other.
    """
    if error.code not in MOVES:
        node.partitions.complaints.tell(f"{what}: {error}")
    return coordinator_error(error.code)


def coordinator_error(code: int) -> int:
    """What a client is told that makes it try again, where the fault is the coordinator's."""
    return code if code in PASSED_ON else ErrorCode.COORDINATOR_NOT_AVAILABLE


def known_error(code: int, *, fenced: bool) -> int:
    """The code as older clients know it."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED and not fenced else code
