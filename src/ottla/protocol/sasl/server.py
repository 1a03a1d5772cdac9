"""What all logins have in common, seen from the server.

    first message ──► next(message) ──► challenge ──► … ──► Accepted

A `ServerConversation` is told what the client sent. It answers with a challenge, with who the client is, or with what it has to be
told before it can go on; SaslError ends it, and its text is for the server's log: clients are told less. Chance is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ottla.protocol.sasl.scram_credential import ScramCredential


class Accepted(Struct, frozen=True):
    """The client is who it says."""

    user: str
    answer: bytes = b""
    """What the mechanism has to say last."""
    until_ms: float | None = None
    """When what it showed ends, by the wall clock; None: never."""
    by_token: bool = False
    """Whether it showed a delegation token."""


class PasswordShown(Struct, frozen=True):
    """The client showed a password in full. Whether it is right takes long to find out where only a hash of it is known."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"PasswordShown({self.user!r}, [hidden])"


class TokenShown(Struct, frozen=True):
    """The client showed a bearer token; whom it names, and whether that is signed by somebody who may, others know."""

    token: str

    def __repr__(self) -> str:
        return "TokenShown([hidden])"


class KnownUser(Struct, frozen=True):
    """A user, or a delegation token, as SCRAM's server knows it."""

    name: str
    """Who logs in; of a token its owner."""
    credential: ScramCredential | None
    """None for a delegation token: `CheckToken` has its."""
    until_ms: float | None = None


class Work(Struct, frozen=True):
    """What comes next takes its time: it is found out on a thread, where SaslError ends the login as well."""

    do: Callable[[], Step]


FindUser = Callable[[str, bool], KnownUser | None]
"""By name, or with True by the id of a delegation token."""
MakeDecoy = Callable[[str, bool], ScramCredential]
"""Make the credential that is sent for an unknown name, or with True for an unknown id of a delegation token."""
CheckToken = Callable[[str, Callable[[ScramCredential], Accepted]], Accepted]
"""Call a function with the credential of a delegation token's id, whether there is such a token or not; takes milliseconds."""
Step = bytes | Accepted | PasswordShown | TokenShown | Work


class ServerConversation(Protocol):
    """Told what a client says, it decides what is said next."""

    def next(self, message: bytes) -> Step:
        """What is to be done about a message; SaslError when the login is refused."""
        ...
