"""The errors of requests to other nodes."""

from __future__ import annotations

from ottla.errors import OttlaError


class PeerLost(OttlaError):
    """No response was received; the text has the reason."""


class PeerDisconnected(PeerLost):
    """No process listens at the address any more."""


class PeerRefused(PeerLost):
    """The other node rejects this broker's login, or is not trusted. A retry would not change that."""
