"""GSSAPI on the server side: the context's tokens, the offer of no security layer, and the client's principal (RFC 4752).

The library may read files, so each step is executed in a thread. `user_of` maps a principal to a user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.gssapi import NO_LAYER, OFFER, Context
from ottla.protocol.sasl.server import Accepted, Step, Work
from ottla.protocol.sentences import shown


class ServerContext(Context, Protocol):
    """A context that has the peer's principal when it is complete."""

    @property
    def principal(self) -> str:
        """The principal in Kerberos notation, with the realm."""
        ...


class GssapiServerConversation:
    """Exchanges tokens, then receives the client's choice of the security layer and its authorization id."""

    def __init__(self, open_context: Callable[[], ServerContext], user_of: Callable[[str], str | None]) -> None:
        """`open_context` may read files; `user_of` returns the user name of a principal, or None if no rule matches."""
        self._open = open_context
        self._user_of = user_of
        self._context: ServerContext | None = None
        self._offered = False

    def next(self, message: bytes) -> Step:
        """Return the work for a message, to be executed in a thread."""
        return Work(lambda: self._step(message))

    def _step(self, message: bytes) -> Step:
        if self._context is None:
            if not message:
                raise SaslError("the first message is empty")
            self._context = self._open()
        if not self._context.complete:
            token = self._context.step(message)
            if token or not self._context.complete:
                return token or b""
        elif self._offered:
            return self._accept(self._context, self._context.unwrap(message))
        elif message:
            raise SaslError("the client sent an unexpected token")
        self._offered = True
        return self._context.wrap(OFFER)

    def _accept(self, context: ServerContext, choice: bytes) -> Accepted:
        if len(choice) < len(OFFER) or choice[0] != NO_LAYER:
            raise SaslError("the client chose a security layer that was not offered")
        principal = context.principal
        acts = choice[len(OFFER) :].decode(errors="replace")
        if acts not in ("", principal):
            raise SaslError("the authorization id differs from the principal")
        user = self._user_of(principal)
        if not user:
            raise SaslError(f"no rule of sasl.kerberos.principal.to.local.rules matches {shown(principal)}")
        return Accepted(user)
