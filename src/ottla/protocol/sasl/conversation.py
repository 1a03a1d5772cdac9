"""The interface of all mechanisms on the client side."""

from __future__ import annotations

from typing import Protocol

from ottla.errors import OttlaError


class SaslError(OttlaError):
    """The login failed: the server violated the mechanism's rules, or rejected the login."""


class Conversation(Protocol):
    """One login. `next` is called with each message of the server, first with an empty one."""

    complete: bool
    """True if the server has sent all mandatory messages; a login accepted before that is rejected."""

    def next(self, challenge: bytes) -> bytes | None:
        """Return the next message, or None at the end; raise SaslError if the server's message is invalid."""
        ...
