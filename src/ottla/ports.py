"""Valid port numbers."""

from __future__ import annotations

HIGHEST_PORT = 65_535


def is_port(text: str) -> bool:
    """Return true if a text is a port number, including 0."""
    digits = text.lstrip("0")
    return text.isascii() and text.isdecimal() and (not digits or (len(digits) <= 5 and int(digits) <= HIGHEST_PORT))
