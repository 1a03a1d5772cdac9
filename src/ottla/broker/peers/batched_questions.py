"""Questions to other brokers that many have: one at a time is under way to each, and what comes meanwhile goes together in the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.coordination.quorum.observer import Address
from ottla.errors import OttlaError
from ottla.protocol.schema import Message

Item = TypeVar("Item")


class Form(NamedTuple):
    """How a question is put."""

    request: Message
    version: int
    answer: type[Message]


class BatchedQuestions(Generic[Item]):
    """What waits for an answer waits in the loop, to which this belongs."""

    def __init__(
        self,
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
        choose: Callable[[Sequence[Item]], list[Item]],
        form: Callable[[list[Item]], Form],
        answered: Callable[[int, list[Item], Any], None],
    ) -> None:
        """`choose` says which of those that wait may go together; `answered` is told the answer to them, or an OttlaError."""
        self._address = address
        self._connect = connect
        self._choose = choose
        self._form = form
        self._answered = answered
        self._connections: dict[int, PeerConnection] = {}
        self._waiting: dict[int, list[Item]] = {}
        self._asked: dict[int, list[Item]] = {}

    def add(self, broker: int, item: Item) -> None:
        self._waiting.setdefault(broker, []).append(item)
        if broker not in self._asked:
            self._put(broker)

    def __iter__(self) -> Iterator[Item]:
        """All that is not answered yet."""
        for items in (*self._waiting.values(), *self._asked.values()):
            yield from items

    def withdraw(self, is_moot: Callable[[int, Item], bool]) -> list[Item]:
        """What is not to be asked of its broker any more, by `is_moot(broker, item)`; it is not told an answer.

        Where nobody waits for the question that is under way, its broker is hung up on: it may be one that is not reached, and
        others who wait for it need not wait that long.
        """
        gone: list[Item] = []
        for broker in {*self._waiting, *self._asked}:
            for items in (self._waiting, self._asked):
                if broker in items:
                    moot, items[broker] = parted(items[broker], partial(is_moot, broker))
                    gone += moot
            if self._asked.get(broker) == []:
                self._connections[broker].close()
                self._done(broker, None)
        return gone

    def close(self) -> None:
        """Hang up; who waits hears nothing any more."""
        for connection in self._connections.values():
            connection.close()
        self._waiting.clear()
        self._asked.clear()

    def _put(self, broker: int) -> None:
        waiting = self._waiting.pop(broker)
        chosen = self._asked[broker] = self._choose(waiting)
        left = [each for each in waiting if each not in chosen]
        if left:
            self._waiting[broker] = left
        address = self._address(broker)
        if address is None:
            self._done(broker, OttlaError(f"nobody knows where broker {broker} is"))
            return
        if broker not in self._connections:
            self._connections[broker] = self._connect(broker)
        done = lambda answer: self._done(broker, answer)  # noqa: E731
        self._connections[broker].ask(Question(address, *self._form(chosen), done))

    def _done(self, broker: int, answer: Any) -> None:
        asked = self._asked.pop(broker, [])
        if asked:
            self._answered(broker, asked, answer)
        if self._waiting.get(broker) and broker not in self._asked:
            self._put(broker)


def parted(items: Iterable[Item], is_moot: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    """Those of which it is so, and the others."""
    of_both: tuple[list[Item], list[Item]] = ([], [])
    for each in items:
        of_both[0 if is_moot(each) else 1].append(each)
    return of_both
