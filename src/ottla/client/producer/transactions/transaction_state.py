"""The states of a transactional producer, and the calls allowed in each.

Literal tables, followed by the code that reads them.

    UNINITIALIZED ─► INITIALIZING ─► READY ⇄ IN_TRANSACTION ─► COMMITTING_TRANSACTION ─► READY
                                                  │  └──────► ABORTABLE_ERROR
                                                  └─► ABORTING_TRANSACTION ◄┘ ─► READY
    any ─► FATAL_ERROR
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ottla.errors import ErrorCode, IllegalStateError, KafkaError


class ProducerTransactionState(Enum):
    """The state of a transactional producer, with the names of the Java client."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING_TRANSACTION = "committing its transaction"
    ABORTING_TRANSACTION = "aborting its transaction"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    FATAL_ERROR = "in a fatal error"


S = ProducerTransactionState
OPEN = frozenset({S.IN_TRANSACTION, S.COMMITTING_TRANSACTION})
"""States in which a transaction may still succeed."""
CAN_ABORT = frozenset({S.IN_TRANSACTION, S.ABORTABLE_ERROR})
"""States in which a user may abort."""
UNENDED = frozenset({*OPEN, *CAN_ABORT, S.ABORTING_TRANSACTION})
"""States with a transaction that was not ended."""

TRANSITIONS: Mapping[ProducerTransactionState, frozenset[ProducerTransactionState]] = {
    S.UNINITIALIZED: frozenset({S.INITIALIZING, S.FATAL_ERROR}),
    S.INITIALIZING: frozenset({S.READY, S.FATAL_ERROR}),
    S.READY: frozenset({S.IN_TRANSACTION, S.FATAL_ERROR}),
    S.IN_TRANSACTION: frozenset({S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.COMMITTING_TRANSACTION: frozenset({S.READY, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.ABORTING_TRANSACTION: frozenset({S.READY, S.INITIALIZING, S.FATAL_ERROR}),
    S.ABORTABLE_ERROR: frozenset({S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.FATAL_ERROR: frozenset({S.FATAL_ERROR}),
}
"""The transitions of each state."""

ALLOWED: Mapping[str, frozenset[ProducerTransactionState]] = {
    "init_transactions": frozenset({S.UNINITIALIZED}),
    "begin_transaction": frozenset({S.READY}),
    "send": frozenset({S.IN_TRANSACTION}),
    "send_offsets_to_transaction": frozenset({S.IN_TRANSACTION}),
    "hand_over_transaction": frozenset({S.IN_TRANSACTION}),
    "commit_transaction": frozenset({S.IN_TRANSACTION}),
    "abort_transaction": frozenset({S.IN_TRANSACTION, S.ABORTABLE_ERROR}),
}
"""The states in which each method may be called."""

REMEDIES: Mapping[ProducerTransactionState, str] = {
    S.UNINITIALIZED: "call init_transactions() first, once",
    S.INITIALIZING: "init_transactions() has not finished; call it again to continue waiting",
    S.READY: "call begin_transaction() first",
    S.IN_TRANSACTION: "call commit_transaction() or abort_transaction() first",
    S.COMMITTING_TRANSACTION: "commit_transaction() has not finished; call it again to continue waiting",
    S.ABORTING_TRANSACTION: "abort_transaction() has not finished; call it again to continue waiting",
    S.ABORTABLE_ERROR: "call abort_transaction(), then start again",
    S.FATAL_ERROR: "close this producer and create a new one",
}
"""The remedy in each state if another method was called."""


def check_transition(before: ProducerTransactionState, after: ProducerTransactionState) -> None:
    """Assert that the transition is allowed."""
    assert after in TRANSITIONS[before], f"{before.name} has no transition to {after.name}"


def check_call(call: str, state: ProducerTransactionState, cause: Exception | None) -> None:
    """Raise IllegalStateError if `call` is not allowed now. The error names the state and the remedy."""
    if state in ALLOWED[call]:
        return
    why = f" ({cause})" if cause is not None else ""
    remedy = "init_transactions() was called already; " if call == "init_transactions" else ""
    if state is S.READY and call == "init_transactions":
        remedy += "call begin_transaction()"
    else:
        remedy += REMEDIES[state]
    raise IllegalStateError(
        f"{call}() cannot be called while the producer is {state.value} [{state.name}]{why}: {remedy}"
    )


def error_to_raise(
    what: str, state: ProducerTransactionState, cause: Exception | None, kind: type[KafkaError]
) -> KafkaError:
    """Return the error that prevents a call, with the type that states the remedy."""
    code = cause.code if isinstance(cause, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
    message = cause.message if isinstance(cause, KafkaError) else f"{type(cause).__name__}: {cause}"
    if isinstance(cause, KafkaError) and isinstance(cause, kind):
        kind = type(cause)
    raised = kind(code, f"{what} [{state.name}]: {REMEDIES[state]}; the cause: {message}")
    raised.__cause__ = cause
    return raised
