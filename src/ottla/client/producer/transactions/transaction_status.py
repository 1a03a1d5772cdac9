"""Where a producer with an id is: its state, what went wrong, and what of that is worth a line in the log.

Says what may be called and what is under way; what follows from a call or an answer is the machine's to decide.
"""

from __future__ import annotations

import logging

from ottla.client.producer.transactions.transaction_state import (
    CAN_ABORT,
    OPEN,
    UNENDED,
    TransactionState,
    as_raised,
    check_call,
    check_transition,
)
from ottla.errors import ApplicationRecoverableError, KafkaError, TransactionAbortableError

S = TransactionState
WITH_ERROR = frozenset({S.ABORTABLE_ERROR, S.FATAL_ERROR, S.ABORTING_TRANSACTION, S.INITIALIZING})
"""Where something may have gone wrong that is not settled."""


class TransactionStatus:
    """A state by Kafka's names, and the error that led there."""

    def __init__(self) -> None:
        self.state = S.UNINITIALIZED
        self.error: Exception | None = None
        """What went wrong in ABORTABLE_ERROR and FATAL_ERROR."""
        self.news: list[tuple[int, str]] = []
        """Lines for the log that were not written yet, each with its level."""
        self.passed: list[TransactionState] = []
        """States that were left since the news were last taken, the first of them first."""

    @property
    def is_fatal(self) -> bool:
        return self.state is S.FATAL_ERROR

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction that may still succeed."""
        return self.state in OPEN

    @property
    def is_aborting(self) -> bool:
        """Whether records that were not sent yet need not be."""
        return self.state in (S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR)

    @property
    def has_open_transaction(self) -> bool:
        return self.state in UNENDED

    @property
    def can_abort(self) -> bool:
        """Whether a user may call `abort_transaction`."""
        return self.state in CAN_ABORT

    def check_call(self, call: str) -> None:
        """IllegalStateError for what may not be called now, the cause itself for what failed."""
        if self.is_fatal:
            raise as_raised(f"{call}() cannot be called", self.state, self.error, ApplicationRecoverableError)
        if self.state is S.ABORTABLE_ERROR and call != "begin_transaction":
            raise as_raised(f"{call}() cannot be called", self.state, self.error, TransactionAbortableError)
        check_call(call, self.state, self.error)

    def become(self, state: TransactionState) -> None:
        check_transition(self.state, state)
        self.tell(logging.DEBUG, f"{self.state.name} -> {state.name}")
        self.enter(state)

    def enter(self, state: TransactionState) -> None:
        """What `become` does, where it is no news for the log."""
        self.passed.append(self.state)
        self.state = state

    def fail(self, error: Exception) -> None:
        """Nothing can be done any more; the first reason stays."""
        if not self.is_fatal:
            self.enter(S.FATAL_ERROR)
            self.error = error
            self.tell(logging.ERROR, f"the producer cannot go on: {error}")

    def lost_transaction(self) -> KafkaError:
        """What those are told who waited for something of a transaction that must be aborted."""
        return as_raised("the transaction failed", self.state, self.error, TransactionAbortableError)

    def tell(self, level: int, text: str) -> None:
        self.news.append((level, text))

    def take_news(self) -> list[tuple[int, str]]:
        """What was not told yet."""
        news = self.news[:]
        self.news.clear()
        return news

    def take_passed(self) -> list[TransactionState]:
        """The states since the last time, that of now at the end; nothing where it has not changed."""
        states = [*self.passed, self.state] if self.passed else []
        self.passed.clear()
        return states

    def check(self) -> None:
        assert self.error is None or self.state in WITH_ERROR
