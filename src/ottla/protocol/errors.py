"""Errors of messages: malformed bytes of the peer (`MalformedError`), or own values that cannot be encoded (`EncodeError`).

Both contain the path of the field: each level of the message adds its name while the error propagates.
"""

from __future__ import annotations

from ottla.errors import OttlaError, ProtocolError


class Located(Exception):
    """A problem, and the path of its field, such as `topics[2].name`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def under(self, name: str) -> None:
        """Prepend `name` to the path."""
        self.path.append(name)

    def __str__(self) -> str:
        path = ".".join(reversed(self.path)).replace(".[", "[")
        return f"{path}: {self.problem}" if path else self.problem


class MalformedError(Located, ProtocolError):
    """Bytes that do not encode the expected message."""


class EncodeError(Located, OttlaError, ValueError):
    """An own value that its field cannot represent; nothing was sent."""
