"""The status of a producer: its state, its error, and the log lines of its changes.

States which calls are allowed; the effects of calls and responses are decided by the machine.
"""

from __future__ import annotations

import logging

from ottla.client.producer.transactions.transaction_state import (
    CAN_ABORT,
    OPEN,
    UNENDED,
    ProducerTransactionState,
    check_call,
    check_transition,
    error_to_raise,
)
from ottla.errors import ApplicationRecoverableError, KafkaError, TransactionAbortableError

S = ProducerTransactionState
WITH_ERROR = frozenset({S.ABORTABLE_ERROR, S.FATAL_ERROR, S.ABORTING_TRANSACTION, S.INITIALIZING})
"""States that may have an unresolved error."""


class TransactionStatus:
    """A state with Kafka's name, and the error that led to it."""

    def __init__(self) -> None:
        self.state = S.UNINITIALIZED
        self.error: Exception | None = None
        """The error in ABORTABLE_ERROR and FATAL_ERROR."""
        self.log_lines: list[tuple[int, str]] = []
        """Log lines that were not written yet, each with its level."""
        self.left_states: list[ProducerTransactionState] = []
        """The states left since they were last taken, in order."""

    @property
    def is_fatal(self) -> bool:
        return self.state is S.FATAL_ERROR

    @property
    def is_open(self) -> bool:
        """True if there is a transaction that may still succeed."""
        return self.state in OPEN

    @property
    def is_aborting(self) -> bool:
        """True if unsent records are not sent any more."""
        return self.state in (S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR)

    @property
    def has_open_transaction(self) -> bool:
        return self.state in UNENDED

    @property
    def can_abort(self) -> bool:
        """True if the user may call `abort_transaction`."""
        return self.state in CAN_ABORT

    def check_call(self, call: str) -> None:
        """Raise IllegalStateError for a call that is not allowed now, or the cause after a failure."""
        if self.is_fatal:
            raise error_to_raise(f"{call}() cannot be called", self.state, self.error, ApplicationRecoverableError)
        if self.state is S.ABORTABLE_ERROR and call != "begin_transaction":
            raise error_to_raise(f"{call}() cannot be called", self.state, self.error, TransactionAbortableError)
        check_call(call, self.state, self.error)

    def transition_to(self, state: ProducerTransactionState) -> None:
        check_transition(self.state, state)
        self.add_log_line(logging.DEBUG, f"{self.state.name} -> {state.name}")
        self.enter_state(state)

    def enter_state(self, state: ProducerTransactionState) -> None:
        """Change the state without a log line."""
        self.left_states.append(self.state)
        self.state = state

    def fail(self, error: Exception) -> None:
        """Enter FATAL_ERROR. The first error is kept."""
        if not self.is_fatal:
            self.enter_state(S.FATAL_ERROR)
            self.error = error
            self.add_log_line(logging.ERROR, f"the producer failed fatally: {error}")

    def lost_transaction_error(self) -> KafkaError:
        """Return the error of callers that waited for a transaction that must be aborted."""
        return error_to_raise("the transaction failed", self.state, self.error, TransactionAbortableError)

    def add_log_line(self, level: int, text: str) -> None:
        self.log_lines.append((level, text))

    def take_log_lines(self) -> list[tuple[int, str]]:
        """Return the log lines not taken yet."""
        news = self.log_lines[:]
        self.log_lines.clear()
        return news

    def take_states(self) -> list[ProducerTransactionState]:
        """Return the states since the last call, with the current one at the end; empty if it has not changed."""
        states = [*self.left_states, self.state] if self.left_states else []
        self.left_states.clear()
        return states

    def check(self) -> None:
        assert self.error is None or self.state in WITH_ERROR
