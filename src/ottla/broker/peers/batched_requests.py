"""Requests that combine the items of several callers: one request at a time to each broker, and items that arrive meanwhile share the next."""

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
    """The form of the requests."""

    request: Message
    version: int
    answer: type[Message]


class BatchedRequests(Generic[Item]):
    """Items that wait for responses. Belongs to the loop."""

    def __init__(
        self,
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
        choose: Callable[[Sequence[Item]], list[Item]],
        form: Callable[[list[Item]], Form],
        answered: Callable[[int, list[Item], Any], None],
    ) -> None:
        """`choose` returns the waiting items that may share a request; `answered` receives the response to them, or an OttlaError."""
        self._address = address
        self._connect = connect
        self._choose = choose
        self._form = form
        self._answered = answered
        self._connections: dict[int, PeerConnection] = {}
        self._waiting: dict[int, list[Item]] = {}
        self._sent: dict[int, list[Item]] = {}

    def add(self, broker: int, item: Item) -> None:
        self._waiting.setdefault(broker, []).append(item)
        if broker not in self._sent:
            self._send(broker)

    def __iter__(self) -> Iterator[Item]:
        """Yield the items without a response."""
        for items in (*self._waiting.values(), *self._sent.values()):
            yield from items

    def withdraw(self, is_moot: Callable[[int, Item], bool]) -> list[Item]:
        """Remove and return the items for which `is_moot(broker, item)` is true. They receive no response.

        If all items of a request under way are removed, the connection is closed: its broker may be unreachable, and
        items that wait for it need not wait as long.
        """
        gone: list[Item] = []
        for broker in {*self._waiting, *self._sent}:
            for items in (self._waiting, self._sent):
                if broker in items:
                    moot, items[broker] = partition_by(items[broker], partial(is_moot, broker))
                    gone += moot
            if self._sent.get(broker) == []:
                self._connections[broker].close()
                self._handle_response(broker, None)
        return gone

    def close(self) -> None:
        """Close the connections. Waiting items receive no response."""
        for connection in self._connections.values():
            connection.close()
        self._waiting.clear()
        self._sent.clear()

    def _send(self, broker: int) -> None:
        waiting = self._waiting.pop(broker)
        chosen = self._sent[broker] = self._choose(waiting)
        left = [each for each in waiting if each not in chosen]
        if left:
            self._waiting[broker] = left
        address = self._address(broker)
        if address is None:
            self._handle_response(broker, OttlaError(f"the address of broker {broker} is unknown"))
            return
        if broker not in self._connections:
            self._connections[broker] = self._connect(broker)
        done = lambda answer: self._handle_response(broker, answer)  # noqa: E731
        self._connections[broker].send_request(Question(address, *self._form(chosen), done))

    def _handle_response(self, broker: int, answer: Any) -> None:
        asked = self._sent.pop(broker, [])
        if asked:
            self._answered(broker, asked, answer)
        if self._waiting.get(broker) and broker not in self._sent:
            self._send(broker)


def partition_by(items: Iterable[Item], is_moot: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    """Return the items that are moot, and the others."""
    of_both: tuple[list[Item], list[Item]] = ([], [])
    for each in items:
        of_both[0 if is_moot(each) else 1].append(each)
    return of_both
