"""Reasons of closed connections that a retry will not change, as subclasses of str."""

from __future__ import annotations

LEFT_BEFORE_HANDSHAKE = "it closed the connection without a TLS handshake"
"""The end of a check whether a port is open, as load balancers make them."""


class ClosedInHandshake(str):
    """The peer closed the connection in the TLS handshake without an alert; the cause is unknown."""

    __slots__ = ()


class NotListening(str):
    """The host refused the connection, because no process listens at the port: the server has stopped."""

    __slots__ = ()


class PeerRefusal(str):
    """A login or a handshake was rejected by one of the two sides."""

    __slots__ = ()
