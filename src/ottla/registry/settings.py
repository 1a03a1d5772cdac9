"""The settings of a registry. Values only."""

from __future__ import annotations

from typing import Any

import msgspec

TOPIC = "_schemas"
GROUP = "schema-registry"
"""The default group of Confluent's and Karapace's servers."""


class RegistrySettings(msgspec.Struct, frozen=True):
    """The settings of one server."""

    client: dict[str, Any]
    """Settings of the clients: `bootstrap.servers` and the login."""
    host: str = "127.0.0.1"
    port: int = 8081
    """0 selects a free one."""
    topic: str = TOPIC
    group: str = GROUP
    """The group in which servers elect a leader."""
    write_timeout_seconds: float = 10.0
    session_timeout_ms: int = 10_000
    """A leader without heartbeats for this time is replaced."""
    advertised_host: str = ""
    """The host at which other servers forward writes; empty for the host that is listened on."""
    may_lead: bool = True
    auth_file: str | None = None
    """Users, tokens and permissions; None lets everyone read and write."""
    certificate_file: str | None = None
    """The certificate chain for HTTPS; None for HTTP."""
    key_file: str | None = None
