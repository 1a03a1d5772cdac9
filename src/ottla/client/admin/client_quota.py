"""Limits of what clients may use, as an admin sees them. Values only."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "<default>"
"""Stands for every name that has no limit of its own, as Kafka's tools print it."""


class ClientQuotaEntity(NamedTuple):
    """Whom a limit is for: `ClientQuotaEntity(user="alice")`; a user and a client id may go together, an address stands alone."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> dict[str, str | None]:
        """Kinds and names as they travel, where None is the default."""
        named = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        return {kind: None if name == DEFAULT else name for kind, name in named.items() if name is not None}
