"""Which numbers a port can have."""

from __future__ import annotations

HIGHEST_PORT = 65_535


def is_port(text: str) -> bool:
    """Whether a text is a port's number; 0 is one where somebody listens."""
    digits = text.lstrip("0")
    return text.isascii() and text.isdecimal() and (not digits or (len(digits) <= 5 and int(digits) <= HIGHEST_PORT))
