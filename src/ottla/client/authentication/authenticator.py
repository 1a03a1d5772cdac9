"""Logs connections in: before their first request, and again before the broker ends their session (KIP-368).

The shell around the conversations of `protocol.sasl`. Waits for nothing: answers come by `NetworkClient`, tokens by `look`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.authentication.token_endpoint import TokenError
from ottla.client.authentication.tokens import TokenKeeper, fetch_for
from ottla.client.network.client_request import ClientResponse, Completion
from ottla.clock import Clock
from ottla.protocol.sasl.conversation import Conversation, SaslError
from ottla.protocol.sasl.oauthbearer import OAuthBearerConversation
from ottla.security.kerberos_login import KerberosError
from ottla.security.login import Login, LoginError, by_password
from ottla.security.login_refusal import LoginRefusal
from ottla.security.security import extensions_of, password_login
from ottla.security.security_config import SecurityConfig

if TYPE_CHECKING:  # loaded by those who need Kerberos
    from ottla.client.authentication.tickets import TicketKeeper

LOG = logging.getLogger(__name__)
EARLIEST, SPREAD = 0.85, 0.10
"""After which part of a session's life the next login begins: not all connections at once."""
SOONEST = 1.1
"""Seconds after a login. Kafka's brokers refuse one within a second of the last; a session as short as that is let end."""


class Connections(Protocol):
    """What a network client does for logins."""

    def ask(self, node_id: int, message: Any, completion: Completion, now: float) -> None:
        """Send to a broker that may be asked nothing else yet."""

    def logged_in(self, node_id: int, renew_at: float) -> None:
        """The connection may be used, until `renew_at`."""

    def refused(self, node_id: int, reason: LoginRefusal, now: float) -> None:
        """There is no login, and trying again will not change that."""


class Authenticator:
    """The logins of one client."""

    def __init__(
        self, config: SecurityConfig, connections: Connections, clock: Clock, random: Random, wake: Callable[[], None]
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
            self._tokens = TokenKeeper(config, fetch_for(config), clock, random, wake)
        elif self._mechanism == "GSSAPI":
            from ottla.client.authentication.tickets import TicketKeeper

            self._tickets = TicketKeeper(config, clock, random, wake)
        else:
            self._who = password_login(config)

    def begin(self, node_id: int, host: str, now: float) -> None:
        """Log a connection to a broker at `host` in, for the first time or again."""
        self._logins.pop(node_id, None)
        self._waiting.add(node_id)
        if self._tickets is not None:
            self._tickets.ask(node_id, host)
        self.look(now)

    def forget(self, node_id: int) -> None:
        """The connection is gone."""
        self._logins.pop(node_id, None)
        self._waiting.discard(node_id)
        if self._tickets is not None:
            self._tickets.forget(node_id)

    def look(self, now: float) -> None:
        """Go on with those that waited for a token or a ticket, if there is one; have the next one fetched in good time."""
        if self._tokens is not None:
            self._keep_token(now)
        if self._tickets is not None:
            self._tickets.look(now)
        for node_id in list(self._waiting):
            self._maybe_begin(node_id, now)

    def _maybe_begin(self, node_id: int, now: float) -> None:
        try:
            login = self._login(node_id, now)
        except (SaslError, TokenError, KerberosError) as error:
            self._waiting.discard(node_id)
            self._connections.refused(node_id, LoginRefusal(f"there is no login by {self._mechanism}: {error}"), now)
            return
        if login is not None:
            self._waiting.discard(node_id)
            self._logins[node_id] = login
            self._connections.ask(node_id, login.first(), self._handle_answer, now)

    def _keep_token(self, now: float) -> None:
        assert self._tokens is not None
        if not self._waiting and self._tokens.known:
            try:
                self._tokens.current(now)
            except TokenError as error:  # told when a connection needs one
                LOG.warning("there is no token for the next login: %s", error)

    def _login(self, node_id: int, now: float) -> Login | None:
        """A login to begin now; None while there is nothing to log in with."""
        talk, name = self._conversation(node_id, now)
        if talk is None:
            return None
        plain = self._config.security_protocol.removeprefix("SASL_")
        no_login = f"set security.protocol={plain}, or take another port"
        return Login(self._mechanism, talk, name=name, remedy=self._remedy(), no_login=no_login)

    def _conversation(self, node_id: int, now: float) -> tuple[Conversation | None, str | None]:
        """One, and whose it is where that is known."""
        if self._tickets is not None:
            return self._tickets.take(node_id), self._tickets.who
        if self._tokens is not None:
            token = self._tokens.fresh(now)
            return (None if token is None else OAuthBearerConversation(token.secret.value, self._extensions)), None
        return by_password(self._mechanism, self._who), self._who.username

    def _handle_answer(self, response: ClientResponse) -> None:
        node_id, answer, now = response.node_id, response.message, response.received
        if answer is None or node_id not in self._logins:
            return
        login = self._logins[node_id]
        try:
            message = login.next(answer)
        except LoginError as error:
            self.forget(node_id)
            self._connections.refused(node_id, LoginRefusal(error), now)
            return
        if message is not None:
            self._connections.ask(node_id, message, self._handle_answer, now)
        else:
            del self._logins[node_id]
            self._connections.logged_in(node_id, self._renew_at(login.session_ms, now))

    def _renew_at(self, session_ms: int, now: float) -> float:
        """When the session is to be prolonged; never where the broker does not end it."""
        if session_ms <= 0:
            return float("inf")
        return now + max(SOONEST, session_ms / 1000 * (EARLIEST + SPREAD * self._random.random()))

    def _remedy(self) -> str:
        if self._tokens is not None:
            return "look at where tokens come from, and at their scope and audience"
        if self._tickets is not None:
            return "look at the broker's log, its keytab, and the clocks of both machines"
        if self._config.sasl_jaas_config is not None:
            return "look at the name and password in sasl.jaas.config"
        return "look at sasl.username and sasl.password"
