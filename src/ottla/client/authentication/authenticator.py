"""Authenticate connections before their first request, and again before the broker ends their session (KIP-368).

The shell around the SASL conversations of `protocol.sasl`. It never blocks: responses arrive through `NetworkClient`,
tokens and tickets are checked by `poll`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.authentication.token_endpoint import TokenError
from ottla.client.authentication.tokens import TokenKeeper, token_fetcher
from ottla.client.network.client_request import ClientResponse, Completion
from ottla.clock import Clock
from ottla.protocol.sasl.conversation import Conversation, SaslError
from ottla.protocol.sasl.oauthbearer import OAuthBearerConversation
from ottla.security.kerberos_login import KerberosError
from ottla.security.login import Login, LoginError, password_conversation
from ottla.security.login_refusal import LoginRefusal
from ottla.security.security import extensions_of, password_login
from ottla.security.security_config import SecurityConfig

if TYPE_CHECKING:  # imported only for GSSAPI
    from ottla.client.authentication.tickets import TicketKeeper

LOG = logging.getLogger(__name__)
RENEWAL_START, RENEWAL_SPREAD = 0.85, 0.10
"""The next login starts after 85 to 95 % of the session lifetime. The random part spreads the logins of several
connections.
"""
MIN_LOGIN_INTERVAL = 1.1
"""The shortest time in seconds between logins. Kafka's brokers reject a login within one second of the last; a session
that is shorter expires.
"""


class LoginConnections(Protocol):
    """The operations of a network client that the authenticator uses."""

    def send_login_request(self, node_id: int, message: Any, completion: Completion, now: float) -> None:
        """Send a request on a connection that is not authenticated yet."""

    def complete_login(self, node_id: int, renew_at: float) -> None:
        """Mark the connection as authenticated until `renew_at`."""

    def fail_login(self, node_id: int, reason: LoginRefusal, now: float) -> None:
        """Report a login failure that a retry does not repair."""


class Authenticator:
    """The logins of all connections of one client."""

    def __init__(
        self,
        config: SecurityConfig,
        connections: LoginConnections,
        clock: Clock,
        random: Random,
        wake: Callable[[], None],
    ) -> None:
        assert config.sasl_mechanism is not None
        self._config = config
        self._mechanism = config.sasl_mechanism
        self._connections = connections
        self._random = random
        self._logins: dict[int, Login] = {}
        self._waiting: set[int] = set()
        """Connections that wait for a token or a ticket."""
        self._tokens: TokenKeeper | None = None
        self._tickets: TicketKeeper | None = None
        if self._mechanism == "OAUTHBEARER":
            self._extensions = extensions_of(config)
            self._tokens = TokenKeeper(config, token_fetcher(config), clock, random, wake)
        elif self._mechanism == "GSSAPI":
            from ottla.client.authentication.tickets import TicketKeeper

            self._tickets = TicketKeeper(config, clock, random, wake)
        else:
            self._password_login = password_login(config)

    def start_login(self, node_id: int, host: str, now: float) -> None:
        """Start the login, or the renewed login, of a connection to the broker at `host`."""
        self._logins.pop(node_id, None)
        self._waiting.add(node_id)
        if self._tickets is not None:
            self._tickets.send_login_request(node_id, host)
        self.poll(now)

    def remove(self, node_id: int) -> None:
        """Remove the state of a closed connection."""
        self._logins.pop(node_id, None)
        self._waiting.discard(node_id)
        if self._tickets is not None:
            self._tickets.cancel_request(node_id)

    def poll(self, now: float) -> None:
        """Continue logins that waited for a token or a ticket, and start refreshing these before they expire."""
        if self._tokens is not None:
            self._maybe_refresh_token(now)
        if self._tickets is not None:
            self._tickets.renew_if_due(now)
        for node_id in list(self._waiting):
            self._maybe_start(node_id, now)

    def _maybe_start(self, node_id: int, now: float) -> None:
        try:
            login = self._login(node_id, now)
        except (SaslError, TokenError, KerberosError) as error:
            self._waiting.discard(node_id)
            self._connections.fail_login(node_id, LoginRefusal(f"login with {self._mechanism} failed: {error}"), now)
            return
        if login is not None:
            self._waiting.discard(node_id)
            self._logins[node_id] = login
            self._connections.send_login_request(node_id, login.first(), self._handle_response, now)

    def _maybe_refresh_token(self, now: float) -> None:
        assert self._tokens is not None
        if not self._waiting and self._tokens.has_token:
            try:
                self._tokens.current_token(now)
            except TokenError as error:  # raised when a connection needs a token
                LOG.warning("token refresh failed error=%s", error)

    def _login(self, node_id: int, now: float) -> Login | None:
        """Return a new login, or None while its token or ticket is not available."""
        conversation, user = self._conversation(node_id, now)
        if conversation is None:
            return None
        plain = self._config.security_protocol.removeprefix("SASL_")
        remedy_without_sasl = f"set security.protocol={plain}, or use another port"
        return Login(self._mechanism, conversation, name=user, remedy=self._remedy(), no_login=remedy_without_sasl)

    def _conversation(self, node_id: int, now: float) -> tuple[Conversation | None, str | None]:
        """Return the SASL conversation, and the user name if it is known.

        The conversation is None while a token or ticket is missing.
        """
        if self._tickets is not None:
            return self._tickets.take_conversation(node_id), self._tickets.principal
        if self._tokens is not None:
            token = self._tokens.fresh_token(now)
            return (None if token is None else OAuthBearerConversation(token.secret.value, self._extensions)), None
        return password_conversation(self._mechanism, self._password_login), self._password_login.username

    def _handle_response(self, response: ClientResponse) -> None:
        node_id, response_message, now = response.node_id, response.message, response.received
        if response_message is None or node_id not in self._logins:
            return
        login = self._logins[node_id]
        try:
            message = login.next(response_message)
        except LoginError as error:
            self.remove(node_id)
            self._connections.fail_login(node_id, LoginRefusal(error), now)
            return
        if message is not None:
            self._connections.send_login_request(node_id, message, self._handle_response, now)
        else:
            del self._logins[node_id]
            self._connections.complete_login(node_id, self._renew_at(login.session_ms, now))

    def _renew_at(self, session_ms: int, now: float) -> float:
        """Return the time to renew the session; infinity if the broker does not limit it."""
        if session_ms <= 0:
            return float("inf")
        return now + max(
            MIN_LOGIN_INTERVAL, session_ms / 1000 * (RENEWAL_START + RENEWAL_SPREAD * self._random.random())
        )

    def _remedy(self) -> str:
        if self._tokens is not None:
            return "check the token source and the scope and audience of the token"
        if self._tickets is not None:
            return "check the broker's log, its keytab, and the clocks of both machines"
        if self._config.sasl_jaas_config is not None:
            return "check the user name and password in sasl.jaas.config"
        return "check sasl.username and sasl.password"
