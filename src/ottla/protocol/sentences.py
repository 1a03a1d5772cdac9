"""Shorten error messages that are too long for a string on the wire.

They quote what a client sent, which may already have the maximum length of a string.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

LONGEST = 1000
"""The maximum number of characters of an error message."""
LONGEST_NAME = 249
"""The maximum length of a topic name."""
MOST_QUOTED = 200
"""The maximum number of characters that are quoted from a peer."""


def shorten_error_messages(message: Any) -> bool:
    """Cut every `error_message` in a message; return true if one was cut."""
    cut = False
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "error_message" and value is not None and len(value) > LONGEST:
            setattr(message, name, value[:LONGEST] + " …")
            cut = True
        elif isinstance(value, list):
            for each in value:
                cut = (isinstance(each, Struct) and shorten_error_messages(each)) or cut
    return cut


def shown(value: object) -> str:
    """Return a peer's text without control characters, cut to MOST_QUOTED characters."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:MOST_QUOTED]


def short(name: str) -> str:
    """Cut a name for a message that is repeated for each partition.

    Names in requests may be as long as a request, and a response must not multiply them.
    """
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"
