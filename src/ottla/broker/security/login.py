"""The login of one connection: its state, and the requests that it allows."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ottla.broker.security.listener_security import ListenerSecurity
from ottla.errors import ErrorCode
from ottla.protocol.sasl.server import ServerConversation


class LoginState(Enum):
    """The state of a login.

    WAITING ──handshake──► TALKING ──► CHECKING ──► DONE ──handshake──► TALKING (again)
                              └───────────┴──► REFUSED
    """

    WAITING = auto()
    TALKING = auto()
    CHECKING = auto()
    """A slow check is running: a password is hashed, or a key is fetched."""
    DONE = auto()
    REFUSED = auto()


class LoginAnswer(NamedTuple):
    """The response to a step of a login."""

    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


class ConnectionLogin:
    """The login of a connection. It is dropped once the connection is authenticated without an expiry."""

    __slots__ = ("deadline", "expires_at", "mechanism", "raw", "received_at", "security", "state", "talk", "user")

    def __init__(self, security: ListenerSecurity, deadline: float) -> None:
        self.security = security
        self.deadline: float | None = deadline
        """The time by which it must succeed, by the monotonic clock; None once it has."""
        self.state = LoginState.WAITING
        self.mechanism = ""
        self.talk: ServerConversation | None = None
        self.raw = False
        """True after a SaslHandshake v0: SASL messages have no request header."""
        self.user: str | None = None
        """The user of the previous login, which a re-authentication must repeat."""
        self.received_at = 0.0
        """The time of its last message, by the monotonic clock."""
        self.expires_at: float | None = None
        """The time by which it must be repeated, by the monotonic clock."""

    @property
    def is_done(self) -> bool:
        """True if the connection is authenticated."""
        return self.state is LoginState.DONE
