"""Names for clients whose user gave none."""

from __future__ import annotations

import itertools

COUNTS: dict[str, itertools.count[int]] = {}


def next_client_id(prefix: str) -> str:
    """`<prefix>-1`, `<prefix>-2` and so on, counted per kind of client in this process."""
    return f"{prefix}-{next(COUNTS.setdefault(prefix.partition('-')[0], itertools.count(1)))}"


def consumer_client_id(group: str | None, instance: str | None) -> str:
    """`consumer-<group>-<n>`, and of a static member `consumer-<group>-<group.instance.id>`, as in the Java client."""
    if group is not None and instance is not None:
        return f"consumer-{group}-{instance}"
    return next_client_id("consumer" if group is None else f"consumer-{group}")
