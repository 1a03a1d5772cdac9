"""Calls to the coordinator of transactions, whose answers may have to wait until what they tell is committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.machines.runtime import Pending
from ottla.broker.requests.call import Call, Outcome
from ottla.errors import KafkaError
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.transaction_coordinator import Later

T = TypeVar("T")


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
