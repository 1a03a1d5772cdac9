"""How each broker's connection stands, and when it may be tried again.

Pure: told what happened and when.

    DISCONNECTED ──► CONNECTING ──► CHECKING_API_VERSIONS ──► READY
         ▲                │                   │                 │
         └────────────────┴───────────────────┴─────────────────┘
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ottla.client.backoff import ExponentialBackoff
from ottla.model import FOREVER


class ConnectionState(Enum):
    """Where a connection is between closed and usable."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking api versions"
    READY = "ready"


@dataclass(slots=True)
class NodeConnectionState:
    """One broker's connection."""

    state: ConnectionState = ConnectionState.DISCONNECTED
    failures: int = 0
    """Attempts in a row that did not get as far as READY."""
    retry_at: float = -FOREVER
    throttled_until: float = -FOREVER
    last_used: float = -FOREVER
    reason: str = ""
    """Why the last connection ended; stays until a connection is ready."""
    hopeless: bool = False
    """Whether the peer has shown that it is not a Kafka broker we can talk to."""


class ConnectionStates:
    """The connections of all brokers."""

    def __init__(self, reconnect: ExponentialBackoff, setup_timeout: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup_timeout = setup_timeout
        self._nodes: dict[int, NodeConnectionState] = {}

    def of(self, node_id: int) -> NodeConnectionState:
        """How one broker's connection stands."""
        return self._nodes.setdefault(node_id, NodeConnectionState())

    def state(self, node_id: int) -> ConnectionState:
        return self.of(node_id).state

    def can_connect(self, node_id: int, now: float) -> bool:
        """Whether a new attempt may begin."""
        node = self.of(node_id)
        return node.state is ConnectionState.DISCONNECTED and now >= node.retry_at

    def is_ready(self, node_id: int, now: float) -> bool:
        """Whether a request may be sent."""
        node = self.of(node_id)
        return node.state is ConnectionState.READY and now >= node.throttled_until

    def delay(self, node_id: int, now: float) -> float:
        """Seconds until it makes sense to look again; infinity when an event will tell."""
        node = self.of(node_id)
        if node.state is ConnectionState.DISCONNECTED:
            return max(0.0, node.retry_at - now)
        if node.state is ConnectionState.READY:
            return max(0.0, node.throttled_until - now)
        return FOREVER

    def connecting(self, node_id: int, now: float) -> float:
        """An attempt begins; returns the seconds it may take."""
        node = self.of(node_id)
        node.state, node.last_used = ConnectionState.CONNECTING, now
        return self._setup_timeout.span(node.failures + 1)

    def checking_api_versions(self, node_id: int) -> None:
        """The connection stands; what the broker speaks is being asked."""
        self.of(node_id).state = ConnectionState.CHECKING_API_VERSIONS

    def ready(self, node_id: int) -> None:
        node = self.of(node_id)
        node.state, node.failures, node.reason, node.hopeless = ConnectionState.READY, 0, "", False

    def disconnected(self, node_id: int, reason: str, now: float, *, hopeless: bool = False) -> None:
        """The connection ended or never came about."""
        node = self.of(node_id)
        was_ready = node.state is ConnectionState.READY
        node.state, node.reason, node.hopeless = ConnectionState.DISCONNECTED, reason, hopeless
        node.failures = 1 if was_ready else node.failures + 1
        node.retry_at = now + self._reconnect.span(node.failures)

    def closed(self, node_id: int) -> None:
        """We closed it ourselves; nothing is held against the broker."""
        self.of(node_id).state = ConnectionState.DISCONNECTED

    def throttle(self, node_id: int, until: float) -> None:
        """The broker asks us to send nothing for a while (KIP-219)."""
        node = self.of(node_id)
        node.throttled_until = max(node.throttled_until, until)

    def idle(self, now: float, span: float) -> list[int]:
        """Brokers whose ready connection has not been used for `span` seconds."""
        return [
            node_id
            for node_id, node in self._nodes.items()
            if node.state is ConnectionState.READY and now - node.last_used >= span
        ]

    def reasons(self) -> dict[int, str]:
        """Why each broker that cannot be reached cannot."""
        return {node_id: node.reason for node_id, node in self._nodes.items() if node.reason}
