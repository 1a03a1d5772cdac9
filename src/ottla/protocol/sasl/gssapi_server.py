"""GSSAPI seen from the server: the context's tokens, the offer of no layer, and who it is (RFC 4752).

What the library does may read files, so each step is work for a thread. Whose name a principal is, others say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.gssapi import NO_LAYER, OFFER, Context
from ottla.protocol.sasl.server import Accepted, Step, Work
from ottla.protocol.sentences import shown


class ServerContext(Context, Protocol):
    """A context that knows, once it is complete, who the other end is."""

    @property
    def principal(self) -> str:
        """As Kerberos spells it, with the realm."""
        ...


class GssapiServerConversation:
    """Tokens, then a message with the layer that the client chose, and whom it wants to act for."""

    def __init__(self, open_context: Callable[[], ServerContext], user_of: Callable[[str], str | None]) -> None:
        """`open_context` may read files; `user_of` makes a user's name of a principal, None where no rule fits."""
        self._open = open_context
        self._user_of = user_of
        self._context: ServerContext | None = None
        self._offered = False

    def next(self, message: bytes) -> Step:
        """What has to be done about it on a thread."""
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
            raise SaslError("it sent a token where none was due")
        self._offered = True
        return self._context.wrap(OFFER)

    def _accept(self, context: ServerContext, choice: bytes) -> Accepted:
        if len(choice) < len(OFFER) or choice[0] != NO_LAYER:
            raise SaslError("it chose a layer of security that was not offered")
        principal = context.principal
        acts = choice[len(OFFER) :].decode(errors="replace")
        if acts not in ("", principal):
            raise SaslError("it wants to act for somebody else than who logs in")
        user = self._user_of(principal)
        if not user:
            raise SaslError(f"no rule of sasl.kerberos.principal.to.local.rules fits {shown(principal)}")
        return Accepted(user)
