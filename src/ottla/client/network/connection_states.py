"""The state of each broker's connection, and when the next attempt is allowed, after Kafka's `ClusterConnectionStates`.

Pure: events and times are arguments.

    DISCONNECTED ──► CONNECTING ──► CHECKING_API_VERSIONS ──► AUTHENTICATING ◄──► READY
         ▲                │                   │                     │               │
         └────────────────┴───────────────────┴─────────────────────┴───────────────┘

Without a login AUTHENTICATING is skipped; with one it is repeated before the broker ends the session.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from ottla.client.metrics.sensor import Sensor
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER

REFUSAL_PAUSE = 10.0
"""Seconds after a rejected login or handshake: a retry at once would not succeed, and might lock the user out."""


SLOW_SECONDS = 1.0
"""Seconds until another broker is tried in addition to one that is not connected yet."""


class ConnectionState(Enum):
    """The state of a connection, from closed to usable."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking api versions"
    AUTHENTICATING = "authenticating"
    READY = "ready"


CONNECTED = (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.AUTHENTICATING, ConnectionState.READY)
"""States with an open connection."""
OPENING = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS, ConnectionState.AUTHENTICATING)
"""States of a connection that is not usable yet."""


class NodeConnectionState(Struct):
    """One broker's connection."""

    state: ConnectionState = ConnectionState.DISCONNECTED
    failures: int = 0
    """Attempts in a row that did not get as far as READY."""
    retry_at: float = -FOREVER
    started_at: float = -FOREVER
    """The start of the current or last attempt to connect."""
    throttled_until: float = -FOREVER
    login_started_at: float = -FOREVER
    is_login_repeated: bool = False
    """True if the current or last login extends a session."""
    renew_at: float = FOREVER
    """The time of the next login; no other request is sent from then on."""
    last_used: float = -FOREVER
    reason: str = ""
    """The reason for the end of the last connection, until another is ready."""
    has_missed_deadline: bool = False
    """True if it missed the deadline of a request."""
    is_incompatible: bool = False
    """True if the peer is not a compatible Kafka broker."""


class ConnectionStates:
    """The connections of all brokers."""

    def __init__(self, reconnect: ExponentialBackoff, setup_timeout: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup_timeout = setup_timeout
        self._nodes: dict[int, NodeConnectionState] = {}
        self.opened, self.ended = Sensor(), Sensor()
        """Opened connections, and those of them that have ended."""
        self.logins, self.refusals = Sensor(), Sensor()
        """Successful and rejected logins."""
        self.repeated_logins, self.failed_repeated_logins = Sensor(), Sensor()
        """Successful (by their seconds) and rejected logins that extend a session."""

    def for_node(self, node_id: int) -> NodeConnectionState:
        """Return the state of one broker's connection."""
        return self._nodes.setdefault(node_id, NodeConnectionState())

    def state(self, node_id: int) -> ConnectionState:
        return self.for_node(node_id).state

    def can_connect(self, node_id: int, now: float) -> bool:
        """Return True if a new attempt to connect may start."""
        node = self.for_node(node_id)
        return node.state is ConnectionState.DISCONNECTED and now >= node.retry_at

    def is_ready(self, node_id: int, now: float) -> bool:
        """Return True if a request may be sent."""
        node = self.for_node(node_id)
        return node.state is ConnectionState.READY and node.throttled_until <= now < node.renew_at

    def should_renew_login(self, node_id: int, now: float) -> bool:
        """Return True if a ready connection has to log in again before it is used."""
        node = self.for_node(node_id)
        return node.state is ConnectionState.READY and now >= node.renew_at

    def is_opening(self, node_id: int, now: float) -> bool:
        """Return True if the connection is opening, or is ready but has to log in again first."""
        return self.state(node_id) in OPENING or self.should_renew_login(node_id, now)

    def is_slow(self, node_id: int, now: float) -> bool:
        """Return True if a connection has been on its way for `SLOW_SECONDS`: the broker may accept connections and answer none."""
        node = self.for_node(node_id)
        return node.state in OPENING and now - node.started_at >= SLOW_SECONDS

    def slow_nodes(self, now: float) -> list[int]:
        """Return the brokers with slow connections."""
        return [node_id for node_id in self._nodes if self.is_slow(node_id, now)]

    def time_to_slow(self, node_id: int, now: float) -> float:
        """Seconds until a connection on its way counts as slow; infinity if it does, or if there is none on its way."""
        node = self.for_node(node_id)
        left = node.started_at + SLOW_SECONDS - now
        return left if node.state in OPENING and left > 0 else FOREVER

    def connection_delay(self, node_id: int, now: float) -> float:
        """Return the seconds until the next check; infinity if an event will end the wait."""
        node = self.for_node(node_id)
        if node.state is ConnectionState.DISCONNECTED:
            return max(0.0, node.retry_at - now)
        if node.state is ConnectionState.READY and now < node.renew_at:
            return max(0.0, node.throttled_until - now)
        return FOREVER

    def start_connecting(self, node_id: int, now: float) -> float:
        """Start an attempt; return the seconds it may take."""
        node = self.for_node(node_id)
        node.state, node.last_used, node.started_at = ConnectionState.CONNECTING, now, now
        return self._setup_timeout.span(node.failures + 1)

    def start_api_versions_check(self, node_id: int) -> None:
        """Mark a connection as open; its ApiVersions request is in flight."""
        node = self.for_node(node_id)
        if node.state is not ConnectionState.CHECKING_API_VERSIONS:
            self.opened.record(1)
        node.state = ConnectionState.CHECKING_API_VERSIONS

    def start_login(self, node_id: int, now: float) -> None:
        """Mark a connection as logging in, after its ApiVersions response."""
        node = self.for_node(node_id)
        node.login_started_at, node.is_login_repeated = now, node.state is ConnectionState.READY
        if node.is_login_repeated:
            node.started_at = now
        node.state, node.reason = ConnectionState.AUTHENTICATING, "the login is not done yet"

    def complete_login(self, node_id: int, renew_at: float, now: float) -> None:
        """Mark a login as successful."""
        node = self.for_node(node_id)
        if node.is_login_repeated:
            self.repeated_logins.record(now - node.login_started_at)
        else:
            self.logins.record(1)
        self.mark_ready(node_id, renew_at)

    def mark_ready(self, node_id: int, renew_at: float = FOREVER) -> None:
        """Mark a connection as ready until `renew_at`."""
        node = self.for_node(node_id)
        node.state, node.failures, node.reason, node.is_incompatible = ConnectionState.READY, 0, "", False
        node.renew_at = renew_at

    def record_disconnect(
        self, node_id: int, reason: str, now: float, *, hopeless: bool = False, refused: bool = False
    ) -> None:
        """Mark a connection as ended or failed; `refused`: one side rejected the other's credentials or certificate."""
        node = self.for_node(node_id)
        was_ready = node.state is ConnectionState.READY
        if refused:
            is_again = node.state is ConnectionState.AUTHENTICATING and node.is_login_repeated
            (self.failed_repeated_logins if is_again else self.refusals).record(1)
        self._count_end(node)
        node.state, node.reason, node.is_incompatible = ConnectionState.DISCONNECTED, reason, hopeless
        node.failures = 1 if was_ready else node.failures + 1
        pause = self._reconnect.span(node.failures)
        node.retry_at = now + (max(pause, REFUSAL_PAUSE) if refused else pause)

    def record_close(self, node_id: int) -> None:
        """We closed it ourselves; nothing is held against the broker."""
        node = self.for_node(node_id)
        self._count_end(node)
        node.state = ConnectionState.DISCONNECTED

    def ready_count(self) -> int:
        """Return the number of connections that can be used. Callable from any thread."""
        return sum(node.state is ConnectionState.READY for node in self._nodes.copy().values())

    def _count_end(self, node: NodeConnectionState) -> None:
        if node.state in CONNECTED:
            self.ended.record(1)

    def mark_doubted(self, node_id: int) -> None:
        """Doubt a broker that missed a deadline: it may be cut off from the others without knowing it."""
        self.for_node(node_id).has_missed_deadline = True

    def clear_doubts(self, node_id: int) -> None:
        """Note a metadata response of a broker; if it is not doubted itself, the doubts about others end."""
        if not self.is_doubted(node_id):
            for node in self._nodes.values():
                node.has_missed_deadline = False

    def is_doubted(self, node_id: int) -> bool:
        """Return True if other brokers are preferred for metadata requests."""
        node = self.for_node(node_id)
        return node.has_missed_deadline or node.failures > 0

    def throttle(self, node_id: int, until: float) -> None:
        """Send no requests until the end of a broker's throttle time (KIP-219)."""
        node = self.for_node(node_id)
        node.throttled_until = max(node.throttled_until, until)

    def find_idle(self, now: float, span: float) -> list[int]:
        """Return the brokers with a ready connection that has been idle for `span` seconds."""
        return [
            node_id
            for node_id, node in self._nodes.items()
            if node.state is ConnectionState.READY and now - node.last_used >= span
        ]

    def failure_reasons(self) -> dict[int, str]:
        """Return the reason for each broker that cannot be reached."""
        return {node_id: node.reason for node_id, node in self._nodes.items() if node.reason}
