"""Explains why connections ended or could not be opened, and logs it.

The explanations are pure: state and reason in, text for a person out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from ottla.client.network.connection_states import ConnectionState, NodeConnectionState
from ottla.model import FOREVER
from ottla.network.refusal import ClosedInHandshake
from ottla.protocol.sentences import shown

LOG = logging.getLogger(__name__)
FOREIGN = ("answers with TLS", "speaks HTTP", "was announced", "not a Kafka broker")
"""Parts of reasons that show that the peer is not a Kafka broker: a retry will not help."""
HASTY_END = (
    "it closed the connection when asked for its versions: not a Kafka broker, one older than 0.10, or a port for TLS "
    "(then set security.protocol=SSL, or SASL_SSL with a login)"
)
CUT_LOGIN = "it closed the connection during the login; its log says why"
FIRST_BYTES = {
    "looks like TLS": "it answers with TLS: set security.protocol=SSL, or SASL_SSL with a login, or take a plaintext port of the broker",
    "looks like HTTP": "it speaks HTTP: not Kafka's protocol; take the port of a broker",
}
"""Reasons that depend on the first bytes of the response, and the text for each."""
PLAINTEXT_THERE = (
    "it does not speak TLS: this is a plaintext port; set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or "
    "take the broker's port for TLS"
)
HASTY = {ConnectionState.CHECKING_API_VERSIONS: HASTY_END, ConnectionState.AUTHENTICATING: CUT_LOGIN}
"""The likely reason if a broker closes the connection in this state without an error."""
SAME_FAILURE_SECONDS = 10.0
"""An identical failure within this time is logged at DEBUG: as long as no login follows a refused one."""

LONG_WAIT_SECONDS = 5.0
"""The time without a response from any address after which one warning explains the wait."""


def explain_failure(reason: str, state: ConnectionState) -> str:
    """Return the reason with a remedy, if there is one."""
    explained = next((text for mark, text in FIRST_BYTES.items() if mark in reason), reason)
    return explained or HASTY.get(state, "") or "the broker closed the connection"


def is_foreign(reason: str, before: str) -> bool:
    """Return True if the peer is not a Kafka broker, so that a retry will not help. `before` is why the last connection ended.

    A broker that is shutting down may close one connection early; a peer that closes two in a row is not a broker.
    """
    return any(mark in reason for mark in FOREIGN) and (reason != HASTY_END or before == HASTY_END)


def explain_required_login(protocol: str, mechanisms: Iterable[str]) -> str:
    """Return the text for a port that requires a login when the client has none configured."""
    wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
    accepted = " or ".join(map(shown, mechanisms))
    return f"this port of the broker asks for a login: set security.protocol={wanted} and sasl.mechanism={accepted}"


class Suspicions:
    """Brokers that closed a connection without an error, by id. The next connection checks the suspected reason."""

    def __init__(self) -> None:
        self._hung_up: set[int] = set()
        self._silent: set[int] = set()

    def record_end(self, node_id: int, reason: str, *, at_first_request: bool) -> None:
        """Note that a connection has ended."""
        (self._hung_up.add if isinstance(reason, ClosedInHandshake) else self._hung_up.discard)(node_id)
        if at_first_request:
            self._silent.add(node_id)

    def is_plaintext_suspected(self, node_id: int) -> bool:
        """Return True if the broker closed the connection during the TLS handshake: the next connection tries plaintext."""
        return node_id in self._hung_up

    def take_login_suspicion(self, node_id: int) -> bool:
        """Return True if the broker closed the connection at the first request: ask once if it requires a login."""
        suspected = node_id in self._silent
        self._silent.discard(node_id)
        return suspected


class FailureLog:
    """Logs connection failures of one client, from any thread.

    A consumer has two network clients, the user's and the heartbeat thread's; a failure that both meet is logged once.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._lock = threading.Lock()
        self._last = ("", -FOREVER)
        self._waiting_since: float | None = None
        """The time of the first attempt since the last response."""
        self._has_explained_wait = False

    def log_failure(self, broker: str, before: NodeConnectionState, reason: str, now: float) -> None:
        """Log a warning; at DEBUG if this connection or the other client has just failed for the same reason."""
        event = "lost" if before.state is ConnectionState.READY else "cannot reach"
        line = f"{event} {broker}: {reason}"
        repeated = self._was_just_logged(line, now) or before.reason == reason
        LOG.log(logging.DEBUG if repeated else logging.WARNING, "[%s] %s", self._client_id, line)

    def is_long_wait(self, now: float) -> bool:
        """Note an attempt to get a first response. Return True once if the attempts have failed for long."""
        with self._lock:
            if self._waiting_since is None:
                self._waiting_since = now
            if self._has_explained_wait or now - self._waiting_since < LONG_WAIT_SECONDS:
                return False
            self._has_explained_wait = True
            return True

    def record_answer(self) -> None:
        """Note a response; the next long wait is explained again."""
        with self._lock:
            self._waiting_since, self._has_explained_wait = None, False

    def log_long_wait(self, servers: Iterable[str], reason: str) -> None:
        """Log why nothing happens, and the remedy."""
        LOG.warning(
            "[%s] no broker has answered for %.0f s and requests are retried bootstrap.servers=%s reason=%s; check the "
            "address, and that a broker runs there (ottla doctor)",
            self._client_id,
            LONG_WAIT_SECONDS,
            ",".join(servers),
            reason,
        )

    def _was_just_logged(self, line: str, now: float) -> bool:
        with self._lock:
            last, at = self._last
            if last == line and now - at < SAME_FAILURE_SECONDS:
                return True
            self._last = (line, now)
            return False
