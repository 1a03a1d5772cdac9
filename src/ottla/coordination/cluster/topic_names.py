"""The validation of topic names."""

from __future__ import annotations

import re

LONGEST = 249
LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def find_fault(name: str) -> str | None:
    """Return the error of an invalid topic name; None if it is valid."""
    if not name:
        return "the name of a topic must not be empty"
    if name in {".", ".."}:
        return f"{name!r} cannot be the name of a topic"
    if len(name) > LONGEST:
        return f"the name of a topic may have {LONGEST} characters, {name[:20]!r}… has {len(name)}"
    if not LEGAL.fullmatch(name):
        return f"{name!r} cannot be the name of a topic: only letters, digits, '.', '_' and '-' may be in it"
    return None


def fold_name(name: str) -> str:
    """Return the name as metrics write it. They replace '.' by '_', so two topics must not have the same result."""
    return name.replace(".", "_")
