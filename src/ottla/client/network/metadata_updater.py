"""Sends Metadata requests, and returns to `bootstrap.servers` if all known brokers are lost.

A part of `NetworkClient`, after Kafka's `DefaultMetadataUpdater`. The client is an argument of each call; no reference to it is kept.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.client.config.common_config import CommonConfig
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.connection_failures import FailureLog
from ottla.client.network.connection_states import SLOW_SECONDS, ConnectionStates
from ottla.errors import ErrorCode, UnsupportedVersionError
from ottla.model import FOREVER, Node
from ottla.protocol.apis import api_of

if TYPE_CHECKING:
    from ottla.client.network.network_client import NetworkClient

LOG = logging.getLogger(__name__)
QUIET_SECONDS = 10.0
"""A further rebootstrap within this time of the last one is logged at DEBUG."""


class MetadataUpdater:
    """Sends a request to the least loaded broker, and to another one if there is no response within a second."""

    def __init__(
        self,
        config: CommonConfig,
        metadata: Metadata,
        states: ConnectionStates,
        client_id: str,
        failure_log: FailureLog,
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._states = states
        self._client_id = client_id
        self._failure_log = failure_log
        self._requested_at: dict[int, float] = {}
        """The time of each request in flight, by node id."""
        self._rebootstrapped_at = -FOREVER

    def reset(self) -> None:
        """Forget the requests in flight, because their responses may never be handled, and request an update."""
        self._requested_at.clear()
        self._metadata.request_update()

    def maybe_update(self, client: NetworkClient, now: float) -> float:
        """Send a request if one is due; return the seconds until the next check."""
        if self._requested_at:
            return self._maybe_request_from_another(client, now)
        wait = self._metadata.time_to_next_update(now)
        if wait > 0:
            return wait
        self._warn_if_unanswered(client, now)
        node = client.least_loaded_node(now)
        if self._should_rebootstrap(client, node is None, now):
            self._rebootstrap("no known broker answers", now)
            node = client.least_loaded_node(now)
        if node is None:
            nodes = self._metadata.cluster.nodes
            return min((self._states.connection_delay(node_id, now) for node_id in nodes), default=FOREVER)
        if client.ready(node, now):
            self._send_request(client, node, now)
            return SLOW_SECONDS
        return min(client.time_to_slow(node, now), self._states.connection_delay(node.node_id, now))

    def _maybe_request_from_another(self, client: NetworkClient, now: float) -> float:
        """Send a request to one more broker if there has been no response for a second."""
        wait = max(self._requested_at.values()) + SLOW_SECONDS - now
        if wait > 0:
            return wait
        self._warn_if_unanswered(client, now)
        others = [node for node in self._metadata.cluster.nodes.values() if node.node_id not in self._requested_at]
        node = client.least_loaded_among(others, now)
        if node is None:
            return min((self._states.connection_delay(other.node_id, now) for other in others), default=FOREVER)
        if client.ready(node, now):
            self._send_request(client, node, now)
            return SLOW_SECONDS
        return min(client.time_to_slow(node, now), self._states.connection_delay(node.node_id, now))

    def _warn_if_unanswered(self, client: NetworkClient, now: float) -> None:
        """Log one warning if no address of `bootstrap.servers` has answered for long."""
        if not self._metadata.has_discovered_brokers() and self._failure_log.is_long_wait(now):
            self._failure_log.log_long_wait(self._config.bootstrap_servers, client.describe_trouble())

    def _should_rebootstrap(self, client: NetworkClient, none_available: bool, now: float) -> bool:
        """Return True if all known brokers are down (KIP-899), or no response has come for too long (KIP-1102)."""
        if self._config.metadata_recovery_strategy == "none" or not self._metadata.has_discovered_brokers():
            return False
        if none_available and client.is_every_broker_down():
            return True
        return self._metadata.unanswered_seconds(now) * 1000 > self._config.metadata_recovery_rebootstrap_trigger_ms

    def _rebootstrap(self, why: str, now: float) -> None:
        """Return to `bootstrap.servers`; log a warning, unless that has happened just before."""
        is_repeated = now - self._rebootstrapped_at < QUIET_SECONDS
        self._rebootstrapped_at = now
        LOG.log(
            logging.DEBUG if is_repeated else logging.WARNING,
            "[%s] %s: returning to bootstrap.servers",
            self._client_id,
            why,
        )
        self._metadata.rebootstrap()

    def _send_request(self, client: NetworkClient, node: Node, now: float) -> None:
        request = self._metadata.next_request(now)
        versions = client.api_versions.get(node.node_id)
        assert versions is not None
        try:
            version = versions.usable_version(api_of(request))
        except UnsupportedVersionError as error:
            self._metadata.record_failure(now)
            self._metadata.set_fatal_error(error)
            client.wakeup()  # so that the waiting call raises the error at once
            return
        self._requested_at[node.node_id] = now
        client.send_internal(node.node_id, request, version, self._handle, now)

    def _handle(self, response: ClientResponse) -> None:
        self._requested_at.pop(response.node_id, None)
        if response.message is None or not response.message.brokers:
            self._metadata.record_failure(response.received)
            code = ErrorCode.NONE if response.message is None else response.message.error_code
            self.maybe_rebootstrap(code, response.node_id, response.received)
        else:
            self._states.clear_doubts(response.node_id)
            self._failure_log.record_answer()
            self._metadata.update(response.message, response.received)

    def maybe_rebootstrap(self, code: int, node_id: int, now: float) -> None:
        """Handle the error of a broker that has left its cluster (KIP-1102), or of another broker (KIP-1242)."""
        if code == ErrorCode.REBOOTSTRAP_REQUIRED and self._config.metadata_recovery_strategy == "rebootstrap":
            self._rebootstrap(f"node {node_id} requests it", now)
