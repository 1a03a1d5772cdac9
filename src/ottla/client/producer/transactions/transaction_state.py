"""The states of a transactional producer, and what may be done in each.

Literal tables; the code that walks them is at the end.

    UNINITIALIZED ─► INITIALIZING ─► READY ⇄ IN_TRANSACTION ─► COMMITTING_TRANSACTION ─► READY
                                                  │  └──────► ABORTABLE_ERROR
                                                  └─► ABORTING_TRANSACTION ◄┘ ─► READY
    any ─► FATAL_ERROR
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ottla.errors import ErrorCode, IllegalStateError, KafkaError


class TransactionState(Enum):
    """Where a transactional producer is; the names are the Java client's."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING_TRANSACTION = "committing its transaction"
    ABORTING_TRANSACTION = "aborting its transaction"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    FATAL_ERROR = "in a fatal error"


S = TransactionState
OPEN = frozenset({S.IN_TRANSACTION, S.COMMITTING_TRANSACTION})
"""Where a transaction may still succeed."""
CAN_ABORT = frozenset({S.IN_TRANSACTION, S.ABORTABLE_ERROR})
"""Where a user may give it up."""
UNENDED = frozenset({*OPEN, *CAN_ABORT, S.ABORTING_TRANSACTION})
"""Where there is one that was not ended."""

TRANSITIONS: Mapping[TransactionState, frozenset[TransactionState]] = {
    S.UNINITIALIZED: frozenset({S.INITIALIZING, S.FATAL_ERROR}),
    S.INITIALIZING: frozenset({S.READY, S.FATAL_ERROR}),
    S.READY: frozenset({S.IN_TRANSACTION, S.FATAL_ERROR}),
    S.IN_TRANSACTION: frozenset({S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.COMMITTING_TRANSACTION: frozenset({S.READY, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.ABORTING_TRANSACTION: frozenset({S.READY, S.INITIALIZING, S.FATAL_ERROR}),
    S.ABORTABLE_ERROR: frozenset({S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.FATAL_ERROR: frozenset({S.FATAL_ERROR}),
}
"""Where each state may lead."""

ALLOWED: Mapping[str, frozenset[TransactionState]] = {
    "init_transactions": frozenset({S.UNINITIALIZED}),
    "begin_transaction": frozenset({S.READY}),
    "send": frozenset({S.IN_TRANSACTION}),
    "send_offsets_to_transaction": frozenset({S.IN_TRANSACTION}),
    "hand_over_transaction": frozenset({S.IN_TRANSACTION}),
    "commit_transaction": frozenset({S.IN_TRANSACTION}),
    "abort_transaction": frozenset({S.IN_TRANSACTION, S.ABORTABLE_ERROR}),
}
"""In which states each method may be called."""

REMEDIES: Mapping[TransactionState, str] = {
    S.UNINITIALIZED: "call init_transactions() first, once",
    S.INITIALIZING: "init_transactions() has not finished; call it again to go on waiting",
    S.READY: "call begin_transaction() first",
    S.IN_TRANSACTION: "call commit_transaction() or abort_transaction() first",
    S.COMMITTING_TRANSACTION: "commit_transaction() has not finished; call it again to go on waiting",
    S.ABORTING_TRANSACTION: "abort_transaction() has not finished; call it again to go on waiting",
    S.ABORTABLE_ERROR: "call abort_transaction(), then begin anew",
    S.FATAL_ERROR: "close this producer and make a new one",
}
"""What to do in each state when something else was called."""


def check_transition(before: TransactionState, after: TransactionState) -> None:
    """See that the way is in the table."""
    assert after in TRANSITIONS[before], f"{before.name} does not lead to {after.name}"


def check_call(call: str, state: TransactionState, cause: Exception | None) -> None:
    """IllegalStateError where `call` may not be made now: names the state, the call and what to do."""
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


def as_raised(what: str, state: TransactionState, cause: Exception | None, kind: type[KafkaError]) -> KafkaError:
    """The error that stands in the way of a call, as one of a kind that tells what to do."""
    code = cause.code if isinstance(cause, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
    message = cause.message if isinstance(cause, KafkaError) else f"{type(cause).__name__}: {cause}"
    if isinstance(cause, KafkaError) and isinstance(cause, kind):
        kind = type(cause)
    raised = kind(code, f"{what} [{state.name}]: {REMEDIES[state]}; the cause: {message}")
    raised.__cause__ = cause
    return raised
