"""The states of a transactional id, their allowed transitions, and the effect of EndTxn in each state.

Tables only. With version 2 of transactions (KIP-890) each end gives the producer a new epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class TransactionState(IntEnum):
    """Kafka's states and their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """The name of the state in Kafka's tools."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """True if the outcome is decided and the markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""The states without an open transaction: one may start, a new producer may take over, the id may expire."""

PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    # From an idle state if a producer of version 2 aborts an empty transaction.
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""A state → the states from which it may be entered."""


class EndAction(Enum):
    """The effect of a request to end a transaction."""

    PREPARE = "prepare"
    """The transaction is ended."""
    DONE = "done"
    """The transaction was ended with this outcome before: the request is a retry."""
    WAIT = "wait"
    """This transaction or the previous one is being ended. The client retries; as in Kafka, the request is validated after that."""
    WRONG = "wrong"
    """There is no transaction to end, or it was ended with the other outcome."""
    FENCED = "fenced"
    """The producer was replaced."""


COMMIT, ABORT = True, False

ENDS_V1: Mapping[tuple[TransactionState, bool], EndAction] = {
    (TransactionState.EMPTY, COMMIT): EndAction.WRONG,
    (TransactionState.EMPTY, ABORT): EndAction.WRONG,
    (TransactionState.ONGOING, COMMIT): EndAction.PREPARE,
    (TransactionState.ONGOING, ABORT): EndAction.PREPARE,
    (TransactionState.PREPARE_COMMIT, COMMIT): EndAction.WAIT,
    (TransactionState.PREPARE_COMMIT, ABORT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, COMMIT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, ABORT): EndAction.WAIT,
    (TransactionState.COMPLETE_COMMIT, COMMIT): EndAction.DONE,
    (TransactionState.COMPLETE_COMMIT, ABORT): EndAction.WRONG,
    (TransactionState.COMPLETE_ABORT, COMMIT): EndAction.WRONG,
    (TransactionState.COMPLETE_ABORT, ABORT): EndAction.DONE,
}
"""State and outcome → effect, for clients that keep their epoch."""

RETRY, CURRENT = True, False

ENDS_V2: Mapping[tuple[TransactionState, bool, bool], EndAction] = {
    (TransactionState.EMPTY, COMMIT, RETRY): EndAction.FENCED,
    (TransactionState.EMPTY, COMMIT, CURRENT): EndAction.WRONG,
    (TransactionState.EMPTY, ABORT, RETRY): EndAction.FENCED,
    (TransactionState.EMPTY, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.ONGOING, COMMIT, RETRY): EndAction.FENCED,
    (TransactionState.ONGOING, COMMIT, CURRENT): EndAction.PREPARE,
    (TransactionState.ONGOING, ABORT, RETRY): EndAction.FENCED,
    (TransactionState.ONGOING, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.PREPARE_COMMIT, COMMIT, RETRY): EndAction.WAIT,
    (TransactionState.PREPARE_COMMIT, COMMIT, CURRENT): EndAction.WAIT,
    (TransactionState.PREPARE_COMMIT, ABORT, RETRY): EndAction.WAIT,
    (TransactionState.PREPARE_COMMIT, ABORT, CURRENT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, COMMIT, RETRY): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, COMMIT, CURRENT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, ABORT, RETRY): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, ABORT, CURRENT): EndAction.WAIT,
    (TransactionState.COMPLETE_COMMIT, COMMIT, RETRY): EndAction.DONE,
    (TransactionState.COMPLETE_COMMIT, COMMIT, CURRENT): EndAction.WRONG,
    (TransactionState.COMPLETE_COMMIT, ABORT, RETRY): EndAction.WRONG,
    (TransactionState.COMPLETE_COMMIT, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.COMPLETE_ABORT, COMMIT, RETRY): EndAction.WRONG,
    (TransactionState.COMPLETE_ABORT, COMMIT, CURRENT): EndAction.WRONG,
    (TransactionState.COMPLETE_ABORT, ABORT, RETRY): EndAction.DONE,
    (TransactionState.COMPLETE_ABORT, ABORT, CURRENT): EndAction.PREPARE,
}
"""State, outcome, and RETRY if the request has the previous epoch → effect (KIP-890).

The epoch increased when the outcome was decided, so a producer that lost the response sends the previous one. A producer that received the response
may end its next transaction before the markers are written; that transaction is empty, because its writes had to wait too (KAFKA-18464).
"""
