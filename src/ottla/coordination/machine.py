"""What every machine is: `decide` reads and answers, `replay` writes and says nothing.

Whoever runs a machine appends the records of a decision to the machine's log, replays them, and only then hands
out the replies. Building a machine anew is replaying its log: the same code as running it.

Why two methods and not one that changes the state and says what it did: what could not be written must not have happened, and
undoing is code that nobody tests. `decide` works on values, or on a copy, and can be thrown away; `replay` cannot refuse,
since what it is given is in the log already, perhaps written by Kafka. A record need not be what was decided but what is so
afterwards: the same record replayed twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

Event = TypeVar("Event", contravariant=True)
Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)


class Reply(Struct, frozen=True):
    """Answers the request that waits under `ticket`."""

    ticket: int
    message: Any


class Alarm(Struct, frozen=True):
    """Wakes the machine at the moment `at`; a later alarm of the same name replaces it, None cancels it."""

    name: Hashable
    at: float | None
    keep: bool = False
    """Whether an alarm of the name that is set already stays as it is."""


class Decision(Struct, Generic[Record_co], frozen=True):
    """What a machine wants done. Records are appended together; replies wait until they are.

    A record may stand for state that dies with the process, such as who waits: it is replayed, and never appended.
    """

    records: tuple[Record_co, ...] = ()
    replies: tuple[Reply, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    notes: tuple[Any, ...] = ()
    """What happened, for people to watch; each has a text."""


def together(decisions: Iterable[Decision[Any]]) -> Decision[Any]:
    """Several decisions as one, in their order."""
    each = list(decisions)
    return Decision(
        tuple(record for decision in each for record in decision.records),
        tuple(reply for decision in each for reply in decision.replies),
        tuple(alarm for decision in each for alarm in decision.alarms),
        tuple(note for decision in each for note in decision.notes),
    )


class Machine(Protocol[Event, Record]):
    """A deterministic state machine kept alive by a log."""

    def decide(self, event: Event, now: float) -> Decision[Record]:
        """What is to be done about `event`; changes nothing."""
        ...

    def replay(self, record: Record) -> None:
        """Let a record of the log become state."""
        ...

    def check(self) -> None:
        """Assert what must hold between any two steps."""
        ...
