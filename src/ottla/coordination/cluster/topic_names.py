"""Which names a topic may have."""

from __future__ import annotations

import re

LONGEST = 249
LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def fault_of(name: str) -> str | None:
    """What is wrong with a topic's name, in a sentence; None when nothing is."""
    if not name:
        return "the name of a topic must not be empty"
    if name in {".", ".."}:
        return f"{name!r} cannot be the name of a topic"
    if len(name) > LONGEST:
        return f"the name of a topic may have {LONGEST} characters, {name[:20]!r}… has {len(name)}"
    if not LEGAL.fullmatch(name):
        return f"{name!r} cannot be the name of a topic: only letters, digits, '.', '_' and '-' may be in it"
    return None


def folded(name: str) -> str:
    """What metrics make of a name: they cannot tell '.' from '_', so no two topics may fold to the same."""
    return name.replace(".", "_")
