"""One connection's login: what it may ask before, and how far it has come."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ottla.broker.authentication.listener_security import ListenerSecurity
from ottla.errors import ErrorCode
from ottla.protocol.sasl.server import ServerConversation


class LoginState(Enum):
    """How far a login is.

    WAITING ──handshake──► TALKING ──► CHECKING ──► DONE ──handshake──► TALKING (again)
                              └───────────┴──► REFUSED
    """

    WAITING = auto()
    TALKING = auto()
    CHECKING = auto()
    """Something takes its time: a password that is hashed, a key that is fetched."""
    DONE = auto()
    REFUSED = auto()


class LoginAnswer(NamedTuple):
    """What a client is told of a step."""

    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


class Login:
    """A connection's, from its beginning; there is none any more once it may do everything for ever."""

    __slots__ = ("deadline", "expires_at", "mechanism", "raw", "received_at", "security", "state", "talk", "user")

    def __init__(self, security: ListenerSecurity, deadline: float) -> None:
        self.security = security
        self.deadline: float | None = deadline
        """When it must be over, by the monotonic clock; None once it has been."""
        self.state = LoginState.WAITING
        self.mechanism = ""
        self.talk: ServerConversation | None = None
        self.raw = False
        """Whether its messages come bare, without a request around them: after a SaslHandshake v0."""
        self.user: str | None = None
        """Who it was the last time: who logs in again must be the same."""
        self.received_at = 0.0
        """When its last message came, by the monotonic clock."""
        self.expires_at: float | None = None
        """When it has to log in again, by the monotonic clock."""
