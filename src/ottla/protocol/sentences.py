"""Error messages that are too long for a text on the wire.

They quote what a client sent, which may be as long as a text can be; with a sentence around it, it no longer is one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

LONGEST = 1000
"""Characters of a sentence that nobody reads to its end."""
MOST_TOLD = 200
"""Characters of what a peer says that are passed on."""


def shorten(message: Any) -> bool:
    """Cut the `error_message` of a message and of all within it; whether there was any to be cut."""
    cut = False
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "error_message" and value is not None and len(value) > LONGEST:
            setattr(message, field.name, value[:LONGEST] + " …")
            cut = True
        elif isinstance(value, list):
            for each in filter(dataclasses.is_dataclass, value):
                cut = shorten(each) or cut
    return cut


def shown(value: object) -> str:
    """A text of the peer's, without what a terminal would obey, and not all of a long one."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:MOST_TOLD]
