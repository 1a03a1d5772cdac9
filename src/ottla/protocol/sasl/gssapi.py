"""GSSAPI with Kerberos: the tokens of a security context, then the security layer, which is "none" (RFC 4752).

The context is a library's, and is passed with its first token: only that one needs the KDC.
"""

from __future__ import annotations

from typing import Protocol

from ottla.protocol.sasl.conversation import SaslError

NO_LAYER = 1
"""The bit of the only security layer that Kafka supports, since TLS provides encryption."""
OFFER = bytes((NO_LAYER, 0, 0, 0))
"""No security layer, and so no maximum message size."""


class Context(Protocol):
    """A security context of either side; raises SaslError on failure."""

    @property
    def complete(self) -> bool:
        """True if both sides are authenticated."""
        ...

    def step(self, token: bytes) -> bytes | None:
        """Process the peer's token; return the next token, if any."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """Return a message with integrity protection."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """Return the content of a protected message."""
        ...


class GssapiConversation:
    """Exchanges the context's tokens, then negotiates the security layer."""

    def __init__(self, context: Context, token: bytes) -> None:
        self._context = context
        self._first: bytes | None = token
        self._agreed = False
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """Return the next token (empty if the context has none), or the choice of the security layer."""
        if self._first is not None:
            token, self._first = self._first, None
            return token
        if not self._context.complete:
            return self._context.step(challenge) or b""
        if not self._agreed:
            self._agreed = True
            return self._choose(self._context.unwrap(challenge))
        if challenge:
            raise SaslError("the server sent an unexpected message after the end of GSSAPI")
        self.complete = True
        return None

    def _choose(self, offer: bytes) -> bytes:
        if len(offer) != len(OFFER):
            raise SaslError("the server's offer of security layers is malformed")
        if not offer[0] & NO_LAYER:
            raise SaslError("the server demands a security layer, which Kafka does not support")
        return self._context.wrap(OFFER)
