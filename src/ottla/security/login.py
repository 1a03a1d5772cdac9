"""One SASL login as a sequence of requests and responses. Pure: the caller sends them.

client                                   broker
SaslHandshake(mechanism)           ──►   the mechanisms that it supports      (KIP-43)
SaslAuthenticate(token)            ──►   a challenge, or an error             (KIP-152)
… until the conversation of the mechanism is complete; the last response has the session's lifetime (KIP-368).
"""

from __future__ import annotations

from typing import Any

from ottla.config import Password
from ottla.digests import nonce
from ottla.errors import ErrorCode, OttlaError, name_of
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.conversation import Conversation, SaslError
from ottla.protocol.sasl.plain import PlainConversation
from ottla.protocol.sasl.scram import ScramConversation
from ottla.protocol.sentences import shown
from ottla.security.security import PasswordLogin


class LoginError(OttlaError):
    """The login failed, and a retry will not help."""


class Login:
    """Creates the requests of a login; at the end it has the session's lifetime."""

    def __init__(self, mechanism: str, talk: Conversation, *, name: str | None, remedy: str, no_login: str) -> None:
        """Use `name` (the user), `remedy` and `no_login` (for a broker without login) in error messages."""
        self.session_ms = 0
        """The time after which the login must be repeated (KIP-368); 0: never."""
        self._mechanism = mechanism
        self._talk = talk
        self._name = name
        self._remedy = remedy
        self._no_login = no_login
        self._shaken = False

    def first(self) -> SaslHandshakeRequest:
        """Return the first request."""
        return SaslHandshakeRequest(mechanism=self._mechanism)

    def next(self, answer: Any) -> SaslAuthenticateRequest | None:
        """Return the request after a response, or None if the login is complete; raise LoginError if it failed."""
        if not self._shaken:
            if answer.error_code != ErrorCode.NONE:
                raise LoginError(self._handshake_error(answer))
            self._shaken = True
            return self._step(b"")
        if answer.error_code != ErrorCode.NONE:
            raise LoginError(self._refusal_message(answer))
        self.session_ms = answer.session_lifetime_ms
        return self._step(bytes(answer.auth_bytes))

    def _step(self, challenge: bytes) -> SaslAuthenticateRequest | None:
        try:
            message = self._talk.next(challenge)
        except SaslError as error:
            raise LoginError(f"the login by {self._mechanism} failed: {error}") from None
        if message is None and not self._talk.complete:
            raise LoginError(f"the login by {self._mechanism} ended before the broker proved its identity")
        return None if message is None else SaslAuthenticateRequest(auth_bytes=message)

    def _handshake_error(self, answer: Any) -> str:
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            taken = ", ".join(shown(name) for name in answer.mechanisms) or "none"
            return f"it does not support sasl.mechanism = {self._mechanism}; it supports {taken}"
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            return f"this port of the broker requires no login; {self._no_login}"
        return f"it rejected the login by {self._mechanism}: {name_of(answer.error_code)}"

    def _refusal_message(self, answer: Any) -> str:
        message = getattr(self._talk, "refusal", None) or shown(answer.error_message or name_of(answer.error_code))
        user = "" if self._name is None else f" as {self._name!r}"
        return f"it rejected the login by {self._mechanism}{user}: {message}; {self._remedy}"


def password_conversation(mechanism: str, login: PasswordLogin) -> Conversation:
    """Return the conversation of PLAIN or SCRAM."""
    password: Password = login.password
    if mechanism == "PLAIN":
        return PlainConversation(login.username, password.value)
    return ScramConversation(mechanism, login.username, password.value, nonce(), token=login.token)
