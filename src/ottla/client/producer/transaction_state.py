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

from ottla.errors import IllegalStateError


class State(Enum):
    """Where a transactional producer is; the names are the Java client's."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING_TRANSACTION = "committing its transaction"
    ABORTING_TRANSACTION = "aborting its transaction"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    FATAL_ERROR = "in a fatal error"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.UNINITIALIZED: frozenset({State.INITIALIZING, State.FATAL_ERROR}),
    State.INITIALIZING: frozenset({State.READY, State.FATAL_ERROR}),
    State.READY: frozenset({State.IN_TRANSACTION, State.FATAL_ERROR}),
    State.IN_TRANSACTION: frozenset(
        {State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION, State.ABORTABLE_ERROR, State.FATAL_ERROR}
    ),
    State.COMMITTING_TRANSACTION: frozenset({State.READY, State.ABORTABLE_ERROR, State.FATAL_ERROR}),
    State.ABORTING_TRANSACTION: frozenset({State.READY, State.INITIALIZING, State.FATAL_ERROR}),
    State.ABORTABLE_ERROR: frozenset({State.ABORTING_TRANSACTION, State.ABORTABLE_ERROR, State.FATAL_ERROR}),
    State.FATAL_ERROR: frozenset({State.FATAL_ERROR}),
}
"""Where each state may lead."""

ALLOWED: Mapping[str, frozenset[State]] = {
    "init_transactions": frozenset({State.UNINITIALIZED}),
    "begin_transaction": frozenset({State.READY}),
    "send": frozenset({State.IN_TRANSACTION}),
    "send_offsets_to_transaction": frozenset({State.IN_TRANSACTION}),
    "hand_over_transaction": frozenset({State.IN_TRANSACTION}),
    "commit_transaction": frozenset({State.IN_TRANSACTION}),
    "abort_transaction": frozenset({State.IN_TRANSACTION, State.ABORTABLE_ERROR}),
}
"""In which states each method may be called."""

REMEDIES: Mapping[State, str] = {
    State.UNINITIALIZED: "call init_transactions() first, once",
    State.INITIALIZING: "init_transactions() has not finished; call it again to go on waiting",
    State.READY: "call begin_transaction() first",
    State.IN_TRANSACTION: "call commit_transaction() or abort_transaction() first",
    State.COMMITTING_TRANSACTION: "commit_transaction() has not finished; call it again to go on waiting",
    State.ABORTING_TRANSACTION: "abort_transaction() has not finished; call it again to go on waiting",
    State.ABORTABLE_ERROR: "call abort_transaction(), then begin anew",
    State.FATAL_ERROR: "close this producer and make a new one",
}
"""What to do in each state when something else was called."""


def check_transition(before: State, after: State) -> None:
    """See that the way is in the table."""
    assert after in TRANSITIONS[before], f"{before.name} does not lead to {after.name}"


def check_call(call: str, state: State, cause: Exception | None) -> None:
    """IllegalStateError where `call` may not be made now: names the state, the call and what to do."""
    if state in ALLOWED[call]:
        return
    why = f" ({cause})" if cause is not None else ""
    remedy = "init_transactions() was called already; " if call == "init_transactions" else ""
    if state is State.READY and call == "init_transactions":
        remedy += "call begin_transaction()"
    else:
        remedy += REMEDIES[state]
    raise IllegalStateError(
        f"{call}() cannot be called while the producer is {state.value} [{state.name}]{why}: {remedy}"
    )
