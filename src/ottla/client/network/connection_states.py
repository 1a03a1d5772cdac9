"""How each broker's connection stands, and when it may be tried again.

Pure: told what happened and when.

    DISCONNECTED ──► CONNECTING ──► CHECKING_API_VERSIONS ──► AUTHENTICATING ◄──► READY
         ▲                │                   │                     │               │
         └────────────────┴───────────────────┴─────────────────────┴───────────────┘

Without a login AUTHENTICATING is left out; with one it comes again before the broker ends the session.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from ottla.client.metrics.sensor import Sensor
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER

REFUSAL_PAUSE = 10.0
"""Seconds after a refused login or handshake: trying again at once would lock the user out, and not help."""


SLOW_SECONDS = 1.0
"""How long a connection may take to become ready until another broker is tried beside it."""


class ConnectionState(Enum):
    """Where a connection is between closed and usable."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking api versions"
    AUTHENTICATING = "authenticating"
    READY = "ready"


STANDING = (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.AUTHENTICATING, ConnectionState.READY)
"""Where there is a connection."""
ON_ITS_WAY = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS, ConnectionState.AUTHENTICATING)
"""Where a connection is before it can be used."""


class NodeConnectionState(Struct):
    """One broker's connection."""

    state: ConnectionState = ConnectionState.DISCONNECTED
    failures: int = 0
    """Attempts in a row that did not get as far as READY."""
    retry_at: float = -FOREVER
    began: float = -FOREVER
    """When the attempt to connect began that is under way, or was last."""
    throttled_until: float = -FOREVER
    login_began: float = -FOREVER
    login_again: bool = False
    """Whether the login that is under way, or was last, is one by which a session goes on."""
    renew_at: float = FOREVER
    """When the login is to be done again: nothing else is sent from then on."""
    last_used: float = -FOREVER
    reason: str = ""
    """Why the last connection ended; stays until a connection is ready."""
    late: bool = False
    """Whether it left something undone that was asked of it in time."""
    hopeless: bool = False
    """Whether the peer has shown that it is not a Kafka broker we can talk to."""


class ConnectionStates:
    """The connections of all brokers."""

    def __init__(self, reconnect: ExponentialBackoff, setup_timeout: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup_timeout = setup_timeout
        self._nodes: dict[int, NodeConnectionState] = {}
        self.opened, self.ended = Sensor(), Sensor()
        """Connections that came about, and those of them that are no more."""
        self.logins, self.refusals = Sensor(), Sensor()
        """Connections that were let in, and not."""
        self.logins_again, self.refusals_again = Sensor(), Sensor()
        """The same of logins by which a session goes on, the first by the seconds each took."""

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
        return node.state is ConnectionState.READY and node.throttled_until <= now < node.renew_at

    def must_renew(self, node_id: int, now: float) -> bool:
        """Whether a connection that is ready is to log in again before it is used."""
        node = self.of(node_id)
        return node.state is ConnectionState.READY and now >= node.renew_at

    def is_on_its_way(self, node_id: int, now: float) -> bool:
        """Whether the connection will be of use soon; one that is to log in again does so when it is wanted."""
        return self.state(node_id) in ON_ITS_WAY or self.must_renew(node_id, now)

    def is_slow(self, node_id: int, now: float) -> bool:
        """True if a connection has been on its way for `SLOW_SECONDS`: the broker may accept connections and answer none."""
        node = self.of(node_id)
        return node.state in ON_ITS_WAY and now - node.began >= SLOW_SECONDS

    def slow_nodes(self, now: float) -> list[int]:
        """The brokers whose connections are slow."""
        return [node_id for node_id in self._nodes if self.is_slow(node_id, now)]

    def time_to_slow(self, node_id: int, now: float) -> float:
        """Seconds until a connection on its way counts as slow; infinity if it does, or if there is none on its way."""
        node = self.of(node_id)
        left = node.began + SLOW_SECONDS - now
        return left if node.state in ON_ITS_WAY and left > 0 else FOREVER

    def delay(self, node_id: int, now: float) -> float:
        """Seconds until it makes sense to look again; infinity when an event will tell."""
        node = self.of(node_id)
        if node.state is ConnectionState.DISCONNECTED:
            return max(0.0, node.retry_at - now)
        if node.state is ConnectionState.READY and now < node.renew_at:
            return max(0.0, node.throttled_until - now)
        return FOREVER

    def connecting(self, node_id: int, now: float) -> float:
        """An attempt begins; returns the seconds it may take."""
        node = self.of(node_id)
        node.state, node.last_used, node.began = ConnectionState.CONNECTING, now, now
        return self._setup_timeout.span(node.failures + 1)

    def checking_api_versions(self, node_id: int) -> None:
        """The connection stands; what the broker speaks is being asked."""
        node = self.of(node_id)
        if node.state is not ConnectionState.CHECKING_API_VERSIONS:
            self.opened.record(1)
        node.state = ConnectionState.CHECKING_API_VERSIONS

    def authenticating(self, node_id: int, now: float) -> None:
        """What the broker speaks is known; who we are it is being told."""
        node = self.of(node_id)
        node.login_began, node.login_again = now, node.state is ConnectionState.READY
        if node.login_again:
            node.began = now
        node.state, node.reason = ConnectionState.AUTHENTICATING, "the login is not done yet"

    def logged_in(self, node_id: int, renew_at: float, now: float) -> None:
        """The broker has let us in, or on."""
        node = self.of(node_id)
        if node.login_again:
            self.logins_again.record(now - node.login_began)
        else:
            self.logins.record(1)
        self.ready(node_id, renew_at)

    def ready(self, node_id: int, renew_at: float = FOREVER) -> None:
        """Requests may be sent, until `renew_at`."""
        node = self.of(node_id)
        node.state, node.failures, node.reason, node.hopeless = ConnectionState.READY, 0, "", False
        node.renew_at = renew_at

    def disconnected(
        self, node_id: int, reason: str, now: float, *, hopeless: bool = False, refused: bool = False
    ) -> None:
        """The connection ended or never came about; `refused`: one side does not accept the other."""
        node = self.of(node_id)
        was_ready = node.state is ConnectionState.READY
        if refused:
            is_again = node.state is ConnectionState.AUTHENTICATING and node.login_again
            (self.refusals_again if is_again else self.refusals).record(1)
        self._note_end(node)
        node.state, node.reason, node.hopeless = ConnectionState.DISCONNECTED, reason, hopeless
        node.failures = 1 if was_ready else node.failures + 1
        pause = self._reconnect.span(node.failures)
        node.retry_at = now + (max(pause, REFUSAL_PAUSE) if refused else pause)

    def closed(self, node_id: int) -> None:
        """We closed it ourselves; nothing is held against the broker."""
        node = self.of(node_id)
        self._note_end(node)
        node.state = ConnectionState.DISCONNECTED

    def ready_count(self) -> int:
        """Connections that may be used; from any thread."""
        return sum(node.state is ConnectionState.READY for node in self._nodes.copy().values())

    def _note_end(self, node: NodeConnectionState) -> None:
        if node.state in STANDING:
            self.ended.record(1)

    def doubt(self, node_id: int) -> None:
        """It has not done in time what was asked of it: it may be cut off from the others, and not know."""
        self.of(node_id).late = True

    def heard_of_others(self, node_id: int) -> None:
        """It has told how the cluster stands; unless it is in doubt itself, that goes for those who are."""
        if not self.is_doubted(node_id):
            for node in self._nodes.values():
                node.late = False

    def is_doubted(self, node_id: int) -> bool:
        """Whether others are to be asked rather than this one how the cluster stands."""
        node = self.of(node_id)
        return node.late or node.failures > 0

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
