"""What can be wrong with a message: the peer's bytes (`MalformedError`) or our own values (`EncodeError`).

Both know where: as they pass up through the message each level adds its name.
"""

from __future__ import annotations

from ottla.errors import OttlaError, ProtocolError


class Located(Exception):
    """A problem, and the path of the field that has it, such as `topics[2].name`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def under(self, name: str) -> None:
        """Say that the path so far lies within `name`."""
        self.path.append(name)

    def __str__(self) -> str:
        path = ".".join(reversed(self.path)).replace(".[", "[")
        return f"{path}: {self.problem}" if path else self.problem


class MalformedError(Located, ProtocolError):
    """Bytes that are not the message they claim to be."""


class EncodeError(Located, OttlaError, ValueError):
    """A value of ours that its field cannot carry; nothing was sent."""
