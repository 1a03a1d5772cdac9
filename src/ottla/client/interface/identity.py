"""Client ids, and the reprs of clients."""

from __future__ import annotations

import itertools
from typing import Any

COUNTS: dict[str, itertools.count[int]] = {}


def next_client_id(prefix: str) -> str:
    """Return `<prefix>-1`, `<prefix>-2` and so on, counted per kind of client in this process."""
    return f"{prefix}-{next(COUNTS.setdefault(prefix.partition('-')[0], itertools.count(1)))}"


def consumer_client_id(group: str | None, instance: str | None) -> str:
    """Return `consumer-<group>-<n>`; for a static member `consumer-<group>-<group.instance.id>`, as in the Java client."""
    if group is not None and instance is not None:
        return f"consumer-{group}-{instance}"
    return next_client_id("consumer" if group is None else f"consumer-{group}")


def describe_client(client: Any, closed: bool, *facts: str) -> str:
    """Return a repr: `ottla.Consumer(client_id='…', bootstrap_servers='…', 3 partitions assigned)`."""
    kind = type(client)
    package = "ottla.aio" if kind.__module__.startswith("ottla.aio") else "ottla"
    servers = ",".join(client.config.bootstrap_servers)
    shown = [
        f"client_id={client.client_id!r}",
        f"bootstrap_servers={servers!r}",
        *facts,
        *(["closed"] if closed else []),
    ]
    return f"{package}.{kind.__name__}({', '.join(shown)})"
