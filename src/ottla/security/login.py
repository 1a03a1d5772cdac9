"""One login as requests and answers: the handshake, then what the mechanism says. Pure: who sends is the caller's business."""

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
    """There is no login, and trying again will not change that."""


class Login:
    """What to send next, and in the end for how long it holds."""

    def __init__(self, mechanism: str, talk: Conversation, *, name: str | None, remedy: str, no_login: str) -> None:
        """`name` is who logs in by a password; `remedy` is said of a refusal, `no_login` where none is asked for."""
        self.session_ms = 0
        """After how long the other side wants it repeated; 0: never."""
        self._mechanism = mechanism
        self._talk = talk
        self._name = name
        self._remedy = remedy
        self._no_login = no_login
        self._shaken = False

    def first(self) -> SaslHandshakeRequest:
        """What to begin with."""
        return SaslHandshakeRequest(mechanism=self._mechanism)

    def next(self, answer: Any) -> SaslAuthenticateRequest | None:
        """What to say to an answer, None when all is said; LoginError where there is no login."""
        if not self._shaken:
            if answer.error_code != ErrorCode.NONE:
                raise LoginError(self._told_of_handshake(answer))
            self._shaken = True
            return self._step(b"")
        if answer.error_code != ErrorCode.NONE:
            raise LoginError(self._told_of_refusal(answer))
        self.session_ms = answer.session_lifetime_ms
        return self._step(bytes(answer.auth_bytes))

    def _step(self, challenge: bytes) -> SaslAuthenticateRequest | None:
        try:
            message = self._talk.next(challenge)
        except SaslError as error:
            raise LoginError(f"the login by {self._mechanism} ended: {error}") from None
        if message is None and not self._talk.complete:
            raise LoginError(f"the login by {self._mechanism} ended before the broker had proved itself")
        return None if message is None else SaslAuthenticateRequest(auth_bytes=message)

    def _told_of_handshake(self, answer: Any) -> str:
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            taken = ", ".join(shown(name) for name in answer.mechanisms) or "none"
            return f"it does not take sasl.mechanism = {self._mechanism}; it takes {taken}"
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            return f"this port of the broker asks for no login; {self._no_login}"
        return f"it refused the login by {self._mechanism}: {name_of(answer.error_code)}"

    def _told_of_refusal(self, answer: Any) -> str:
        told = getattr(self._talk, "refusal", None) or shown(answer.error_message or name_of(answer.error_code))
        who = "" if self._name is None else f" as {self._name!r}"
        return f"it refused the login by {self._mechanism}{who}: {told}; {self._remedy}"


def by_password(mechanism: str, login: PasswordLogin) -> Conversation:
    """A conversation by PLAIN or SCRAM."""
    password: Password = login.password
    if mechanism == "PLAIN":
        return PlainConversation(login.username, password.value)
    return ScramConversation(mechanism, login.username, password.value, nonce(), token=login.token)
