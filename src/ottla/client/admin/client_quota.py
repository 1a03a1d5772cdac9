"""Quotas of clients as an admin sees them. Values only."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "<default>"
"""The name of the default quota, as Kafka's tools print it; it applies to every name without a quota of its own."""


class ClientQuotaEntity(NamedTuple):
    """The client that a quota applies to: `ClientQuotaEntity(user="alice")`.

    A user and a client id may be combined; an address may not.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def format_parts(self) -> dict[str, str | None]:
        """Return kinds and names in the form of the protocol, in which None is the default."""
        named = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        return {kind: None if name == DEFAULT else name for kind, name in named.items() if name is not None}
