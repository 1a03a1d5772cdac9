"""The interface of every state machine: `decide` reads the state and returns effects, `replay` changes the state.

The caller appends the records of a decision to the machine's log, replays them, and only then sends the replies. A machine is rebuilt by
replaying its log, with the same code.

Two methods instead of one that changes the state and returns the effects: a decision whose append fails must have no effect, and code to undo one
would rarely be tested. `decide` works on values or on a copy, and its result can be discarded. `replay` cannot reject a record, because it is
in the log already, possibly written by Kafka. A record has the resulting state, not the change: replaying it twice has no further effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

Event = TypeVar("Event", contravariant=True)
Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)


class Reply(Struct, frozen=True):
    """The response to the request with this ticket."""

    ticket: int
    message: Any


class Alarm(Struct, frozen=True):
    """A named timer that expires at the monotonic time `at`. A later alarm of the same name replaces it, None cancels it."""

    name: Hashable
    at: float | None
    keep: bool = False
    """True if an alarm of that name that is set already stays unchanged."""


class Decision(Struct, Generic[Record_co], frozen=True):
    """The effects of an event. Records are appended together; replies wait for that.

    A record may have state that does not survive a restart, such as held requests: it is replayed and never appended.
    """

    records: tuple[Record_co, ...] = ()
    replies: tuple[Reply, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    notes: tuple[Any, ...] = ()
    """What happened, for log files and live views; each note has a text."""


def merge_decisions(decisions: Iterable[Decision[Any]]) -> Decision[Any]:
    """Return several decisions as one, in order."""
    each = list(decisions)
    return Decision(
        tuple(record for decision in each for record in decision.records),
        tuple(reply for decision in each for reply in decision.replies),
        tuple(alarm for decision in each for alarm in decision.alarms),
        tuple(note for decision in each for note in decision.notes),
    )


class Machine(Protocol[Event, Record]):
    """A deterministic state machine that is rebuilt from a log."""

    def decide(self, event: Event, now: float) -> Decision[Record]:
        """Return the effects of an event, without a change of the state."""
        ...

    def replay(self, record: Record) -> None:
        """Apply a record of the log to the state."""
        ...

    def check(self) -> None:
        """Assert the invariants that hold between two steps."""
        ...
