"""Error messages that are too long for a text on the wire.

They quote what a client sent, which may be as long as a text can be; with a sentence around it, it no longer is one.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

LONGEST = 1000
"""Characters of a sentence that nobody reads to its end."""
LONGEST_NAME = 249
"""Characters of a topic's name at most."""
MOST_TOLD = 200
"""Characters of what a peer says that are passed on."""


def shorten(message: Any) -> bool:
    """Cut the `error_message` of a message and of all within it; whether there was any to be cut."""
    cut = False
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "error_message" and value is not None and len(value) > LONGEST:
            setattr(message, name, value[:LONGEST] + " …")
            cut = True
        elif isinstance(value, list):
            for each in value:
                cut = (isinstance(each, Struct) and shorten(each)) or cut
    return cut


def shown(value: object) -> str:
    """A text of the peer's, without what a terminal would obey, and not all of a long one."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:MOST_TOLD]


def short(name: str) -> str:
    """A name for a message that is repeated for each partition: as long as a topic's can be, or cut.

    Names in requests may be as long as a request, and an answer must not be that many times longer.
    """
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"
