"""The interface of all mechanisms on the server side.

first message ──► next(message) ──► challenge ──► … ──► Accepted

A `ServerConversation` receives the client's messages. It returns a challenge, the authenticated user, or a request for
information that the caller must supply. SaslError ends it; its text is for the server's log, clients receive less.
Random values are arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ottla.protocol.sasl.scram_credential import ScramCredential


class Accepted(Struct, frozen=True):
    """The end of a successful login."""

    user: str
    answer: bytes = b""
    """The mechanism's last message."""
    until_ms: float | None = None
    """The wall-clock time in ms at which the credentials expire; None: never."""
    by_token: bool = False
    """True if a delegation token was used."""


class PasswordShown(Struct, frozen=True):
    """The client sent a clear-text password. Its check is slow if only a hash is stored."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"PasswordShown({self.user!r}, [hidden])"


class TokenShown(Struct, frozen=True):
    """The client sent a bearer token; the caller validates its issuer and subject."""

    token: str

    def __repr__(self) -> str:
        return "TokenShown([hidden])"


class KnownUser(Struct, frozen=True):
    """A user, or a delegation token, for SCRAM."""

    name: str
    """The user; for a token its owner."""
    credential: ScramCredential | None
    """None for a delegation token: `CheckToken` has its credential."""
    until_ms: float | None = None


class Work(Struct, frozen=True):
    """The next step is slow and must be executed in a thread; SaslError there also ends the login."""

    do: Callable[[], Step]


FindUser = Callable[[str, bool], KnownUser | None]
"""Find a user by name, or a delegation token by id if the flag is true."""
MakeDecoy = Callable[[str, bool], ScramCredential]
"""Return the credential sent for an unknown name, or for an unknown token id if the flag is true."""
CheckToken = Callable[[str, Callable[[ScramCredential], Accepted]], Accepted]
"""Call a function with the credential of a token id, whether the token exists or not; takes milliseconds."""
Step = bytes | Accepted | PasswordShown | TokenShown | Work


class ServerConversation(Protocol):
    """Decides the next step for each message of a client."""

    def next(self, message: bytes) -> Step:
        """Return the next step; raise SaslError if the login is rejected."""
        ...
