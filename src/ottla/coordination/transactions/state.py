"""The states of a transactional id, which may follow which, and what a wish to end a transaction means in each.

Pure tables. Version 2 of transactions is KIP-890: each end of a transaction gives the producer a new epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class TransactionState(IntEnum):
    """Kafka's numbers, as they stand in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """What Kafka's tools call it."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is settled and its markers are on their way."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""Nothing is under way: a transaction may begin, a new producer may take over, the id may expire."""

PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    # From an idle state where a producer of version 2 aborts a transaction in which nothing happened.
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""A state → those from which it may be entered."""


class EndAction(Enum):
    """What becomes of a wish to end a transaction."""

    PREPARE = "prepare"
    """It is ended."""
    DONE = "done"
    """It has been ended like that: the wish came twice."""
    WAIT = "wait"
    """It is being ended, or the one before it is: whether the wish is a right one is said when that is over, as Kafka's coordinator does."""
    WRONG = "wrong"
    """There is nothing to end, or it was ended the other way."""
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
"""State and wish → what happens, where the epoch stays the same from one transaction to the next."""

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
"""State, wish, and whether the wish bears the epoch before the present one → what happens (KIP-890).

The epoch was moved on when the outcome was settled, so a producer that did not hear the answer comes again with the one before.
One that heard it may be back with the present epoch before the markers are written: with a transaction in which nothing happened,
since its writes had to wait as well (KAFKA-18464).
"""
