"""What the end of a connection means to a person, and how the next one finds out where it tells nothing.

Pure: told what happened, and why as far as that is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.network.connection_states import ConnectionState
from ottla.network.refusal import HungUp
from ottla.protocol.sentences import shown

FOREIGN = ("answers with TLS", "speaks HTTP", "was announced", "not a Kafka broker")
"""What the reason of a connection's end says when the peer is no Kafka broker: trying again will not help."""
HASTY_END = (
    "it closed the connection when asked for its versions: not a Kafka broker, one older than 0.10, or a port for TLS "
    "(then set security.protocol=SSL, or SASL_SSL with a login)"
)
CUT_LOGIN = "it closed the connection amid the login; its log says why"
FIRST_BYTES = {
    "looks like TLS": "it answers with TLS: set security.protocol=SSL, or SASL_SSL with a login, or take a plaintext port of the broker",
    "looks like HTTP": "it speaks HTTP: not Kafka's protocol; take the port of a broker",
}
"""What tells who is there, when a connection ends because of how an answer begins, and what we say then."""
PLAINTEXT_THERE = (
    "it does not speak TLS: this is a plaintext port; set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or "
    "take the broker's port for TLS"
)
HASTY = {ConnectionState.CHECKING_API_VERSIONS: HASTY_END, ConnectionState.AUTHENTICATING: CUT_LOGIN}
"""What it means when a broker closes a connection in such a state without a word."""


def meaning(reason: str, state: ConnectionState) -> str:
    """The reason in words that say what to do."""
    told = next((told for mark, told in FIRST_BYTES.items() if mark in reason), reason)
    return told or HASTY.get(state, "") or "the broker closed the connection"


def is_foreign(reason: str, before: str) -> bool:
    """Whether the peer is no Kafka broker, so that trying again will not help. `before` is why the last connection ended.

    Who hangs up once may be a broker that was about to end; who does it each time is none.
    """
    return any(mark in reason for mark in FOREIGN) and (reason != HASTY_END or before == HASTY_END)


def wants_login(protocol: str, mechanisms: Iterable[str]) -> str:
    """What to say of a port that asks for a login that nobody has offered."""
    wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
    taken = " or ".join(map(shown, mechanisms))
    return f"this port of the broker asks for a login: set security.protocol={wanted} and sasl.mechanism={taken}"


class Suspicions:
    """Brokers that closed a connection without a word, by their ids."""

    def __init__(self) -> None:
        self._hung_up: set[int] = set()
        self._silent: set[int] = set()

    def note(self, node_id: int, reason: str, *, at_first_request: bool) -> None:
        """A connection has ended."""
        (self._hung_up.add if isinstance(reason, HungUp) else self._hung_up.discard)(node_id)
        if at_first_request:
            self._silent.add(node_id)

    def of_plaintext(self, node_id: int) -> bool:
        """Whether it hung up amid the handshake of TLS: the next connection asks in plaintext whether it speaks that."""
        return node_id in self._hung_up

    def of_login(self, node_id: int) -> bool:
        """Whether it closed the connection at the first request: the next one asks whether it wants a login; once."""
        suspected = node_id in self._silent
        self._silent.discard(node_id)
        return suspected
