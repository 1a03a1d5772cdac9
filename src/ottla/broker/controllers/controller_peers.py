"""The way of a controller to the others of its quorum: a connection for each node, one question at a time on it.

The first question on a connection is what the other can do: ours leads nowhere where a voter could be the active controller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerGone, PeerLost
from ottla.coordination.quorum.events import Event, PeerConnected, RequestFailed, ResponseReceived
from ottla.coordination.quorum.observer import Address
from ottla.protocol.apis import api_of
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.schema import Message

VERSIONS = {
    "AddRaftVoter": 1,
    "ApiVersions": 4,
    "BeginQuorumEpoch": 1,
    "ControllerRegistration": 0,
    "EndQuorumEpoch": 1,
    "Fetch": 18,
    "FetchSnapshot": 1,
    "RemoveRaftVoter": 0,
    "UpdateRaftVoter": 0,
    "Vote": 2,
}
"""In which a controller asks another: those of Kafka 4.3."""
API_VERSIONS = 0
"""The first says which APIs there are, and of who is met no more is wanted; earlier ones than 4 do not tell of `kraft.version`."""


class ControllerPeers:
    """Belongs to the loop. What comes back is put into `news`, for the loop to take from there."""

    def __init__(self, connect: Callable[[int], PeerConnection], address: Callable[[int], Address | None]) -> None:
        """`address` says where a node is, if that is known by now."""
        self.news: deque[Event] = deque()
        self._connect = connect
        self._address = address
        self._connections: dict[int, PeerConnection] = {}
        self._under_way: dict[int, int] = {}
        self._met: set[int] = set()
        """Who has said on its connection what it can do."""

    def ask(self, node: int, number: int, request: Message) -> None:
        """Ask a node; a question that it has not answered is given up for that."""
        address = self._address(node)
        if address is None:
            self.news.append(RequestFailed(node, number))
            return
        if node not in self._connections:
            self._connections[node] = self._connect(node)
        connection = self._connections[node]
        if node in self._under_way:
            connection.close()
            self._met.discard(node)
        self._under_way[node] = number
        if node in self._met:
            self._put(node, number, address, request)
            return
        asked = Question(
            address,
            ApiVersionsRequest(),
            API_VERSIONS,
            ApiVersionsResponse,
            lambda said: self._meet(node, number, address, request, said),
        )
        connection.ask(asked)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _meet(self, node: int, number: int, address: Address, request: Message, said: Any) -> None:
        """It says what it can do, or nothing."""
        if isinstance(said, PeerLost):
            self._answered(node, number, said)
            return
        self._met.add(node)
        keys = {each.api_key for each in said.api_keys}
        self.news.append(PeerConnected(node, BrokerRegistrationRequest.KEY in keys))
        self._put(node, number, address, request)

    def _put(self, node: int, number: int, address: Address, request: Message) -> None:
        api = api_of(request)
        version = VERSIONS[api.name]
        done = partial(self._answered, node, number)
        self._connections[node].ask(Question(address, request, version, api.response, done))

    def _answered(self, node: int, number: int, said: Any) -> None:
        self._under_way.pop(node, None)
        if isinstance(said, PeerLost):
            self._met.discard(node)
            self.news.append(RequestFailed(node, number, isinstance(said, PeerGone)))
        else:
            self.news.append(ResponseReceived(node, number, said))
