"""Connections of a controller to the other voters: one per node, with one request in flight.

The first request on a connection is ApiVersions. Its response shows whether the node can become the active controller. A
leader that cannot become one gives way to a voter that can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerDisconnected, PeerLost
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
"""Request versions towards other controllers: those of Kafka 4.3."""
API_VERSIONS = 0
"""Only the keys of the response are used, so version 0 is enough. Versions before 4 do not state `kraft.version`."""


class ControllerPeers:
    """Belongs to the event loop. Results are appended to `news`, which the loop empties."""

    def __init__(self, connect: Callable[[int], PeerConnection], address: Callable[[int], Address | None]) -> None:
        """`address` returns the address of a node, or None if it is not known yet."""
        self.news: deque[Event] = deque()
        self._connect = connect
        self._address = address
        self._connections: dict[int, PeerConnection] = {}
        self._in_flight: dict[int, int] = {}
        self._met: set[int] = set()
        """Nodes that have answered ApiVersions on their present connection."""

    def send_request(self, node: int, number: int, request: Message) -> None:
        """Send a request to a node. An earlier one that is in flight is abandoned, and its connection closed."""
        address = self._address(node)
        if address is None:
            self.news.append(RequestFailed(node, number))
            return
        if node not in self._connections:
            self._connections[node] = self._connect(node)
        connection = self._connections[node]
        if node in self._in_flight:
            connection.close()
            self._met.discard(node)
        self._in_flight[node] = number
        if node in self._met:
            self._send(node, number, address, request)
            return
        asked = Question(
            address,
            ApiVersionsRequest(),
            API_VERSIONS,
            ApiVersionsResponse,
            lambda said: self._handle_versions(node, number, address, request, said),
        )
        connection.send_request(asked)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _handle_versions(self, node: int, number: int, address: Address, request: Message, said: Any) -> None:
        """Handle the response to ApiVersions, then send the request that waits for it."""
        if isinstance(said, PeerLost):
            self._handle_response(node, number, said)
            return
        self._met.add(node)
        keys = {each.api_key for each in said.api_keys}
        self.news.append(PeerConnected(node, BrokerRegistrationRequest.KEY in keys))
        self._send(node, number, address, request)

    def _send(self, node: int, number: int, address: Address, request: Message) -> None:
        api = api_of(request)
        version = VERSIONS[api.name]
        done = partial(self._handle_response, node, number)
        self._connections[node].send_request(Question(address, request, version, api.response, done))

    def _handle_response(self, node: int, number: int, said: Any) -> None:
        self._in_flight.pop(node, None)
        if isinstance(said, PeerLost):
            self._met.discard(node)
            self.news.append(RequestFailed(node, number, isinstance(said, PeerDisconnected)))
        else:
            self.news.append(ResponseReceived(node, number, said))
