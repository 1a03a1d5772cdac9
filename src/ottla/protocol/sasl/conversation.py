"""What all logins have in common, seen from the client."""

from __future__ import annotations

from typing import Protocol

from ottla.errors import OttlaError


class SaslError(OttlaError):
    """The login cannot go on: the server broke the rules of the mechanism, or says why it refuses."""


class Conversation(Protocol):
    """One login. `next` is called with what the server sent, at first with nothing."""

    complete: bool
    """Whether the server has said all that it must; a login that it takes before that is refused."""

    def next(self, challenge: bytes) -> bytes | None:
        """What to send now, None when there is nothing left to say; SaslError when the server cannot be believed."""
        ...
