"""The history of a round: events in the order in which they became known, as JSON lines that can be judged again.

A request is recorded before it is sent, and a response after it arrived: the events before a request
had happened when it was sent. Places are partitions, named `topic-number`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TextIO

Row = tuple[int, str]
"""Offset and value of a record."""


@dataclass(frozen=True, slots=True)
class Took:
    """A transactional id has a new producer: all before it are fenced."""

    name: str
    instance: int


@dataclass(frozen=True, slots=True)
class Began:
    """A transaction of a producer; `key` is its name in this history."""

    key: str
    name: str
    instance: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A record is about to be sent; `sender` numbers what it sends to a place in order of `number`."""

    value: str
    place: str
    sender: str
    number: int
    transaction: str | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker says that it has a record, and where."""

    value: str
    place: str
    offset: int


@dataclass(frozen=True, slots=True)
class Read:
    """A transaction is about what it read here."""

    transaction: str
    place: str
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Promised:
    """An offset is about to be sent into a transaction."""

    transaction: str
    group: str
    place: str
    offset: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a transaction is asked for."""

    transaction: str
    commit: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The broker says that it is done. A transaction without this may have gone either way."""

    transaction: str
    commit: bool


@dataclass(frozen=True, slots=True)
class Saw:
    """The records that a reader of committed records got at once. On the first read, or with `again`, it started at `start`."""

    reader: str
    place: str
    rows: tuple[Row, ...]
    again: bool = False
    start: int = -1


@dataclass(frozen=True, slots=True)
class Position:
    """A group's stable offset for a place, -1 where it has none; `asked` is how many events there were before."""

    group: str
    place: str
    offset: int
    asked: int


@dataclass(frozen=True, slots=True)
class Final:
    """Everything of a place, when all is over: what is committed, and how far readers of it come of how much."""

    place: str
    rows: tuple[Row, ...]
    stable: int
    end: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A worker could not go on."""

    why: str


Event = Took | Began | Sent | Acknowledged | Read | Promised | Ending | Ended | Saw | Position | Final | GivenUp
KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (Took, Began, Sent, Acknowledged, Read, Promised, Ending, Ended, Saw, Position, Final, GivenUp)
}


class History:
    """Events as they come from many threads."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self.events)

    def add(self, event: Event) -> None:
        """Record an event."""
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def wait_for(self, count: int, timeout: float) -> bool:
        """Wait for so many events; return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.events) >= count, timeout)


def write(events: Iterable[Event], file: TextIO) -> None:
    """One line for each event."""
    for event in events:
        file.write(json.dumps({"event": type(event).__name__} | asdict(event)) + "\n")


def read(lines: Iterable[str]) -> list[Event]:
    """Return the events of lines that `write` wrote."""
    return [event_of(json.loads(line)) for line in lines]


def event_of(fields: dict[str, object]) -> Event:
    """An event of its line."""
    kind = KINDS[str(fields.pop("event"))]
    rows = fields.get("rows")
    if isinstance(rows, list):
        fields["rows"] = tuple((offset, value) for offset, value in rows)
    return kind(**fields)  # type: ignore[arg-type]
