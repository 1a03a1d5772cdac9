"""The way of a controller to the others of its quorum: a connection for each node, one question at a time on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.broker.peers.loop_connection import LoopConnection, Question
from ottla.broker.peers.peer_connection import PeerLost
from ottla.coordination.quorum.events import Answered, Event, Lost
from ottla.coordination.quorum.observer import Address
from ottla.protocol.apis import api_of
from ottla.protocol.schema import Message

VERSIONS = {"Vote": 2, "BeginQuorumEpoch": 1, "EndQuorumEpoch": 1, "Fetch": 18, "FetchSnapshot": 1}
"""In which a controller asks another: those of Kafka 4.3."""


class ControllerPeers:
    """Belongs to the loop. What comes back is put into `news`, for the loop to take from there."""

    def __init__(self, connect: Callable[[int], LoopConnection], address: Callable[[int], Address | None]) -> None:
        """`address` says where a node is, if that is known by now."""
        self.news: deque[Event] = deque()
        self._connect = connect
        self._address = address
        self._connections: dict[int, LoopConnection] = {}
        self._under_way: dict[int, int] = {}

    def ask(self, node: int, number: int, request: Message) -> None:
        """Ask a node; a question that it has not answered is given up for that."""
        address = self._address(node)
        if address is None:
            self.news.append(Lost(node, number))
            return
        connection = self._connections.setdefault(node, self._connect(node))
        if node in self._under_way:
            connection.close()
        self._under_way[node] = number
        api = api_of(request)
        question = Question(
            address, request, VERSIONS[api.name], api.response, lambda said: self._answered(node, number, said)
        )
        connection.ask(question)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _answered(self, node: int, number: int, said: Any) -> None:
        self._under_way.pop(node, None)
        self.news.append(Lost(node, number) if isinstance(said, PeerLost) else Answered(node, number, said))
