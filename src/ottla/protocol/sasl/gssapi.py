"""GSSAPI, which is Kerberos: tokens of a security context, then the layer of security, which is none (RFC 4752).

The context is a library's and is handed in with its first token: for that a KDC has to be asked, and for nothing after it.
"""

from __future__ import annotations

from typing import Protocol

from ottla.protocol.sasl.conversation import SaslError

NO_LAYER = 1
"""Of the bits that name layers; Kafka's protocol has no other, as TLS does that."""
OFFER = bytes((NO_LAYER, 0, 0, 0))
"""No layer, and so no size of its messages."""


class Context(Protocol):
    """What both ends make of their tokens; SaslError where it cannot go on."""

    @property
    def complete(self) -> bool:
        """Whether both know who the other is."""
        ...

    def step(self, token: bytes) -> bytes | None:
        """Take the other's token; what to send for it, if anything."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """A message that cannot be changed on its way."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """What is in such a message."""
        ...


class GssapiConversation:
    """The context's tokens until it is complete, then what is agreed upon of layers."""

    def __init__(self, context: Context, token: bytes) -> None:
        self._context = context
        self._first: bytes | None = token
        self._agreed = False
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """A token, an empty message where the context has none for a server that does, or the choice of a layer."""
        if self._first is not None:
            token, self._first = self._first, None
            return token
        if not self._context.complete:
            return self._context.step(challenge) or b""
        if not self._agreed:
            self._agreed = True
            return self._choose(self._context.unwrap(challenge))
        if challenge:
            raise SaslError("the server says more than GSSAPI has")
        self.complete = True
        return None

    def _choose(self, offer: bytes) -> bytes:
        if len(offer) != len(OFFER):
            raise SaslError("the server's offer of layers is not written as GSSAPI has it")
        if not offer[0] & NO_LAYER:
            raise SaslError("the server insists on a layer of security inside the login, which Kafka has not")
        return self._context.wrap(OFFER)
