"""Asks for metadata when that is due, and begins again at the first addresses where those that were learnt are lost.

A part of `NetworkClient`, without connections of its own: it is handed the client at each look, and holds none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.client.config.common_config import CommonConfig
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.connection_states import SLOW_SECONDS, ConnectionStates
from ottla.errors import ErrorCode, UnsupportedVersionError
from ottla.model import FOREVER, Node
from ottla.protocol.apis import api_of

if TYPE_CHECKING:
    from ottla.client.network.network_client import NetworkClient

LOG = logging.getLogger(__name__)
QUIET_SECONDS = 10.0
"""So long it is not told again that a client begins again, counted from the last time that it did."""


class MetadataUpdater:
    """The least busy broker is asked; another one as well if there is no answer within a second."""

    def __init__(self, config: CommonConfig, metadata: Metadata, states: ConnectionStates, client_id: str) -> None:
        self._config = config
        self._metadata = metadata
        self._states = states
        self._client_id = client_id
        self._asked: dict[int, float] = {}
        """When each broker was asked whose answer is still to come."""
        self._began_again = -FOREVER

    def reset(self) -> None:
        """Forget the requests under way, whose answers may never be handled, and have the metadata asked for again."""
        self._asked.clear()
        self._metadata.request_update()

    def maybe_update(self, client: NetworkClient, now: float) -> float:
        """Ask where that is due; returns the seconds after which to look again."""
        if self._asked:
            return self._maybe_ask_another(client, now)
        wait = self._metadata.time_to_next_update(now)
        if wait > 0:
            return wait
        node = client.least_loaded_node(now)
        if self._must_begin_again(client, node is None, now):
            self._begin_again("no broker that was learnt answers", now)
            node = client.least_loaded_node(now)
        if node is None:
            nodes = self._metadata.cluster.nodes
            return min((self._states.delay(node_id, now) for node_id in nodes), default=FOREVER)
        if client.ready(node, now):
            self._ask(client, node, now)
            return SLOW_SECONDS
        return min(client.time_to_slow(node, now), self._states.delay(node.node_id, now))

    def _maybe_ask_another(self, client: NetworkClient, now: float) -> float:
        """Ask one more broker where those that were asked have not answered for a second: they may never answer."""
        wait = max(self._asked.values()) + SLOW_SECONDS - now
        if wait > 0:
            return wait
        others = [node for node in self._metadata.cluster.nodes.values() if node.node_id not in self._asked]
        node = client.least_loaded_among(others, now)
        if node is None:
            return min((self._states.delay(other.node_id, now) for other in others), default=FOREVER)
        if client.ready(node, now):
            self._ask(client, node, now)
            return SLOW_SECONDS
        return min(client.time_to_slow(node, now), self._states.delay(node.node_id, now))

    def _must_begin_again(self, client: NetworkClient, nobody: bool, now: float) -> bool:
        """Whether those we know are lost, all of them or for too long (KIP-899, KIP-1102)."""
        if self._config.metadata_recovery_strategy == "none" or not self._metadata.knows_more_than_bootstrap():
            return False
        if nobody and client.is_every_broker_down():
            return True
        return self._metadata.unanswered_for(now) * 1000 > self._config.metadata_recovery_rebootstrap_trigger_ms

    def _begin_again(self, why: str, now: float) -> None:
        """A warning says so, but not each time where brokers are lost and found and lost."""
        again = now - self._began_again < QUIET_SECONDS
        self._began_again = now
        LOG.log(
            logging.DEBUG if again else logging.WARNING,
            "[%s] %s: beginning again at bootstrap.servers",
            self._client_id,
            why,
        )
        self._metadata.rebootstrap()

    def _ask(self, client: NetworkClient, node: Node, now: float) -> None:
        request = self._metadata.next_request(now)
        versions = client.api_versions.get(node.node_id)
        assert versions is not None
        try:
            version = versions.usable(api_of(request))
        except UnsupportedVersionError as error:
            self._metadata.failed(now)
            self._metadata.fail(error)
            client.wakeup()  # who waits in this poll is told at once
            return
        self._asked[node.node_id] = now
        client.send_internal(node.node_id, request, version, self._handle, now)

    def _handle(self, response: ClientResponse) -> None:
        self._asked.pop(response.node_id, None)
        if response.message is None or not response.message.brokers:
            self._metadata.failed(response.received)
            self._heed(response)
        else:
            self._states.heard_of_others(response.node_id)
            self._metadata.update(response.message, response.received)

    def _heed(self, response: ClientResponse) -> None:
        """A broker that has left its cluster says so (KIP-1102)."""
        told = response.message is not None and response.message.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        if told and self._config.metadata_recovery_strategy == "rebootstrap":
            self._begin_again(f"node {response.node_id} asks for it", response.received)
