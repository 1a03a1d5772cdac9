"""Names for clients whose user gave none."""

from __future__ import annotations

import itertools

COUNTS: dict[str, itertools.count[int]] = {}


def next_client_id(prefix: str) -> str:
    """`<prefix>-1`, `<prefix>-2` and so on, counted per kind of client in this process."""
    return f"{prefix}-{next(COUNTS.setdefault(prefix.partition('-')[0], itertools.count(1)))}"
