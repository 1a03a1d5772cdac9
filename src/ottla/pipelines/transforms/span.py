"""Spans of time, as Spark reads them."""

from __future__ import annotations

import re

SPAN = re.compile(r"\s*\d+(\.\d+)?\s+(milli|micro)?(second|minute|hour|day|week|month|year)s?\s*", re.IGNORECASE)


def span(text: str | None) -> str | None:
    """The text, if it is a span; ValueError where it is none."""
    if text is not None and not SPAN.fullmatch(text):
        raise ValueError(f"{text!r} is no span of time; write such as `10 seconds`")
    return text
