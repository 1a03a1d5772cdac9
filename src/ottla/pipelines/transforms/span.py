"""Durations as Spark parses them."""

from __future__ import annotations

import re

SPAN = re.compile(r"\s*\d+(\.\d+)?\s+(milli|micro)?(second|minute|hour|day|week|month|year)s?\s*", re.IGNORECASE)


def span(text: str | None) -> str | None:
    """Return the text; ValueError if it is not a duration."""
    if text is not None and not SPAN.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write for example `10 seconds`")
    return text
