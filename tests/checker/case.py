"""A history put in order: what was sent, acknowledged, done in each transaction, and is there when all is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.checker.history import Acknowledged, Began, Ended, Ending, Event, Final, Promised, Read, Sent


@dataclass
class Transaction:
    """All that a history has of one."""

    began: Began
    at: int
    """The number of the event with which it began."""
    sends: list[Sent] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    promises: list[Promised] = field(default_factory=list)
    commit_asked_at: int | None = None
    ended_at: int | None = None
    outcome: bool | None = None
    """The reported outcome; None if no outcome was reported."""

    def take(self, at: int, event: Read | Promised | Ending | Ended) -> None:
        """Append an event of the transaction."""
        match event:
            case Read():
                self.reads.append(event)
            case Promised():
                self.promises.append(event)
            case Ending(_, commit):
                if commit:
                    self.commit_asked_at = at
            case Ended(_, commit):
                self.outcome, self.ended_at = commit, at

    @property
    def may_be_committed(self) -> bool:
        """True if its commit was requested and no abort was reported."""
        return self.outcome is not False and self.commit_asked_at is not None


class Case:
    """A history, put in order."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self.sent: dict[str, tuple[int, Sent]] = {}
        self.acknowledged: dict[str, tuple[int, Acknowledged]] = {}
        self.transactions: dict[str, Transaction] = {}
        self.final: dict[str, Final] = {}
        for at, event in enumerate(self.events):
            self._take(at, event)
        self.offsets = {(place, value): offset for place, final in self.final.items() for offset, value in final.rows}
        """The final offset of each value, by place and value."""

    def of_kind(self, kind: type[Event]) -> Iterator[tuple[int, Event]]:
        return ((at, event) for at, event in enumerate(self.events) if isinstance(event, kind))

    def is_visible(self, sent: Sent) -> bool:
        """True if it is among the committed records at the end."""
        return (sent.place, sent.value) in self.offsets

    def was_committed(self, transaction: Transaction) -> bool:
        """By what was said, else by what is seen."""
        if transaction.outcome is not None:
            return transaction.outcome
        return any(map(self.is_visible, transaction.sends))

    def _take(self, at: int, event: Event) -> None:
        match event:
            case Sent():
                self.sent[event.value] = at, event
                if event.transaction is not None:
                    self.transactions[event.transaction].sends.append(event)
            case Acknowledged():
                self.acknowledged[event.value] = at, event
            case Final():
                self.final[event.place] = event
            case Began():
                self.transactions[event.key] = Transaction(event, at)
            case Read() | Promised() | Ending() | Ended():
                self.transactions[event.transaction].take(at, event)
