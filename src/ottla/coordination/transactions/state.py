"""The states of a transactional id, which may follow which, and what a wish to end a transaction means in each.

Pure tables. Version 2 of transactions is KIP-890: each end of a transaction gives the producer a new epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class State(IntEnum):
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
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)


IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""Nothing is under way: a transaction may begin, a new producer may take over, the id may expire."""

PREVIOUS: Mapping[State, frozenset[State]] = {
    State.EMPTY: IDLE,
    State.ONGOING: IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # From an idle state where a producer of version 2 aborts a transaction in which nothing happened.
    State.PREPARE_ABORT: IDLE | {State.ONGOING},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
}
"""A state → those from which it may be entered."""


class End(Enum):
    """What becomes of a wish to end a transaction."""

    PREPARE = "prepare"
    """It is ended."""
    DONE = "done"
    """It has been ended like that: the wish came twice."""
    WAIT = "wait"
    """It is being ended like that."""
    WRONG = "wrong"
    """There is nothing to end, or it was ended the other way."""
    FENCED = "fenced"
    """The producer was replaced."""


COMMIT, ABORT = True, False

ENDS_V1: Mapping[tuple[State, bool], End] = {
    (State.EMPTY, COMMIT): End.WRONG,
    (State.EMPTY, ABORT): End.WRONG,
    (State.ONGOING, COMMIT): End.PREPARE,
    (State.ONGOING, ABORT): End.PREPARE,
    (State.PREPARE_COMMIT, COMMIT): End.WAIT,
    (State.PREPARE_COMMIT, ABORT): End.WRONG,
    (State.PREPARE_ABORT, COMMIT): End.WRONG,
    (State.PREPARE_ABORT, ABORT): End.WAIT,
    (State.COMPLETE_COMMIT, COMMIT): End.DONE,
    (State.COMPLETE_COMMIT, ABORT): End.WRONG,
    (State.COMPLETE_ABORT, COMMIT): End.WRONG,
    (State.COMPLETE_ABORT, ABORT): End.DONE,
}
"""State and wish → what happens, where the epoch stays the same from one transaction to the next."""

RETRY, CURRENT = True, False

ENDS_V2: Mapping[tuple[State, bool, bool], End] = {
    (State.EMPTY, COMMIT, RETRY): End.FENCED,
    (State.EMPTY, COMMIT, CURRENT): End.WRONG,
    (State.EMPTY, ABORT, RETRY): End.FENCED,
    (State.EMPTY, ABORT, CURRENT): End.PREPARE,
    (State.ONGOING, COMMIT, RETRY): End.FENCED,
    (State.ONGOING, COMMIT, CURRENT): End.PREPARE,
    (State.ONGOING, ABORT, RETRY): End.FENCED,
    (State.ONGOING, ABORT, CURRENT): End.PREPARE,
    (State.PREPARE_COMMIT, COMMIT, RETRY): End.WAIT,
    (State.PREPARE_COMMIT, COMMIT, CURRENT): End.FENCED,
    (State.PREPARE_COMMIT, ABORT, RETRY): End.WRONG,
    (State.PREPARE_COMMIT, ABORT, CURRENT): End.FENCED,
    (State.PREPARE_ABORT, COMMIT, RETRY): End.WRONG,
    (State.PREPARE_ABORT, COMMIT, CURRENT): End.FENCED,
    (State.PREPARE_ABORT, ABORT, RETRY): End.WAIT,
    (State.PREPARE_ABORT, ABORT, CURRENT): End.FENCED,
    (State.COMPLETE_COMMIT, COMMIT, RETRY): End.DONE,
    (State.COMPLETE_COMMIT, COMMIT, CURRENT): End.WRONG,
    (State.COMPLETE_COMMIT, ABORT, RETRY): End.WRONG,
    (State.COMPLETE_COMMIT, ABORT, CURRENT): End.PREPARE,
    (State.COMPLETE_ABORT, COMMIT, RETRY): End.WRONG,
    (State.COMPLETE_ABORT, COMMIT, CURRENT): End.WRONG,
    (State.COMPLETE_ABORT, ABORT, RETRY): End.DONE,
    (State.COMPLETE_ABORT, ABORT, CURRENT): End.PREPARE,
}
"""State, wish, and whether the wish bears the epoch before the present one → what happens (KIP-890).

The epoch was moved on when the outcome was settled, so a producer that did not hear the answer comes again with the one before.
"""
