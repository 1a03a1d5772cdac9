"""Logs connections in: before their first request, and again before the broker ends their session (KIP-368).

The shell around the conversations of `protocol.sasl`. Waits for nothing: answers come by `NetworkClient`, tokens by `look`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from ottla.client.authentication.login_refusal import LoginRefusal
from ottla.client.authentication.security import extensions_of, password_login
from ottla.client.authentication.settings import SecurityConfig
from ottla.client.authentication.token_endpoint import TokenError
from ottla.client.authentication.tokens import TokenKeeper, fetch_for
from ottla.client.client_request import Completion
from ottla.client.client_response import ClientResponse
from ottla.clock import Clock
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl import (
    Conversation,
    OAuthBearerConversation,
    PlainConversation,
    SaslError,
    ScramConversation,
)
from ottla.protocol.sentences import shown

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
        self._talks: dict[int, Conversation] = {}
        self._waiting: set[int] = set()
        """Connections that wait for a token."""
        self._tokens: TokenKeeper | None = None
        if self._mechanism == "OAUTHBEARER":
            self._extensions = extensions_of(config)
            self._tokens = TokenKeeper(config, fetch_for(config), clock, random, wake)
        else:
            self._login = password_login(config)

    def begin(self, node_id: int, now: float) -> None:
        """Log a connection in, for the first time or again."""
        self._talks.pop(node_id, None)
        self._waiting.add(node_id)
        self.look(now)

    def forget(self, node_id: int) -> None:
        """The connection is gone."""
        self._talks.pop(node_id, None)
        self._waiting.discard(node_id)

    def look(self, now: float) -> None:
        """Go on with those that waited for a token, if there is one; have the next one fetched in good time."""
        if self._tokens is not None:
            self._keep_token(now)
        for node_id in list(self._waiting):
            try:
                talk = self._conversation(now)
            except (SaslError, TokenError) as error:
                self._waiting.clear()
                self._connections.refused(
                    node_id, LoginRefusal(f"there is no login by {self._mechanism}: {error}"), now
                )
                return
            if talk is None:
                return
            self._waiting.discard(node_id)
            self._talks[node_id] = talk
            handshake = SaslHandshakeRequest(mechanism=self._mechanism)
            self._connections.ask(node_id, handshake, self._handle_handshake, now)

    def _keep_token(self, now: float) -> None:
        assert self._tokens is not None
        if not self._waiting and self._tokens.known:
            try:
                self._tokens.current(now)
            except TokenError as error:  # told when a connection needs one
                LOG.warning("there is no token for the next login: %s", error)

    def _conversation(self, now: float) -> Conversation | None:
        """How to log in now; None while there is no token."""
        if self._tokens is not None:
            token = self._tokens.fresh(now)
            return None if token is None else OAuthBearerConversation(token.secret.value, self._extensions)
        username, password = self._login.username, self._login.password.value
        if self._mechanism == "PLAIN":
            return PlainConversation(username, password)
        nonce = secrets.token_urlsafe(24)
        return ScramConversation(self._mechanism, username, password, nonce, token=self._login.token)

    def _handle_handshake(self, response: ClientResponse) -> None:
        node_id, answer = response.node_id, response.message
        if answer is None or node_id not in self._talks:
            return
        if answer.error_code == ErrorCode.NONE:
            self._step(node_id, b"", 0, response.received)
            return
        self._refuse(node_id, self._told_of_handshake(answer), response.received)

    def _told_of_handshake(self, answer: Any) -> str:
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            taken = ", ".join(shown(name) for name in answer.mechanisms) or "none"
            return f"it does not take sasl.mechanism = {self._mechanism}; it takes {taken}"
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            plain = self._config.security_protocol.removeprefix("SASL_")
            return f"this port of the broker asks for no login; set security.protocol={plain}, or take another port"
        return f"it refused the login by {self._mechanism}: {name_of(answer.error_code)}"

    def _step(self, node_id: int, challenge: bytes, session_ms: int, now: float) -> None:
        talk = self._talks[node_id]
        try:
            message = talk.next(challenge)
        except SaslError as error:
            self._refuse(node_id, f"the login by {self._mechanism} ended: {error}", now)
            return
        if message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            self._connections.ask(node_id, request, self._handle_answer, now)
        elif not talk.complete:
            self._refuse(node_id, f"the login by {self._mechanism} ended before the broker had proved itself", now)
        else:
            del self._talks[node_id]
            self._connections.logged_in(node_id, self._renew_at(session_ms, now))

    def _renew_at(self, session_ms: int, now: float) -> float:
        """When the session is to be prolonged; never where the broker does not end it."""
        if session_ms <= 0:
            return float("inf")
        return now + max(SOONEST, session_ms / 1000 * (EARLIEST + SPREAD * self._random.random()))

    def _handle_answer(self, response: ClientResponse) -> None:
        node_id, answer = response.node_id, response.message
        if answer is None or node_id not in self._talks:
            return
        if answer.error_code == ErrorCode.NONE:
            self._step(node_id, bytes(answer.auth_bytes), answer.session_lifetime_ms, response.received)
            return
        refusal = getattr(self._talks[node_id], "refusal", None)
        told = refusal or shown(answer.error_message or name_of(answer.error_code))
        who = f" as {self._login.username!r}" if self._tokens is None else ""
        reason = f"it refused the login by {self._mechanism}{who}: {told}; {self._remedy()}"
        self._refuse(node_id, reason, response.received)

    def _remedy(self) -> str:
        if self._tokens is not None:
            return "look at where tokens come from, and at their scope and audience"
        if self._config.sasl_jaas_config is not None:
            return "look at the name and password in sasl.jaas.config"
        return "look at sasl.username and sasl.password"

    def _refuse(self, node_id: int, reason: str, now: float) -> None:
        self.forget(node_id)
        self._connections.refused(node_id, LoginRefusal(reason), now)
