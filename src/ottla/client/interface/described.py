"""How clients show themselves: who, where to, and whether they are still of use."""

from __future__ import annotations

from typing import Any


def described(client: Any, closed: bool, *facts: str) -> str:
    """Such as `ottla.Consumer(client_id='…', bootstrap_servers='…', 3 partitions assigned)`."""
    kind = type(client)
    home = "ottla.aio" if kind.__module__.startswith("ottla.aio") else "ottla"
    servers = ",".join(client.config.bootstrap_servers)
    shown = [
        f"client_id={client.client_id!r}",
        f"bootstrap_servers={servers!r}",
        *facts,
        *(["closed"] if closed else []),
    ]
    return f"{home}.{kind.__name__}({', '.join(shown)})"
