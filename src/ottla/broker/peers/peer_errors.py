"""Why somebody else of the cluster did not answer."""

from __future__ import annotations

from ottla.errors import OttlaError


class PeerLost(OttlaError):
    """Nobody answered; why, it says."""


class PeerGone(PeerLost):
    """Nobody listens there any more."""


class PeerRefused(PeerLost):
    """They do not let this broker in, or are not to be believed; trying again will not change that."""
