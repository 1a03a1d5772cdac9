"""The reason of a failed login."""

from __future__ import annotations

from ottla.network.refusal import PeerRefusal


class LoginRefusal(PeerRefusal):
    """The broker rejected the login, could not prove its identity, or there are no credentials."""

    __slots__ = ()
