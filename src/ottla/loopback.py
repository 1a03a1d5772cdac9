"""Loopback addresses, and the Host headers of an HTTP server on them."""

from __future__ import annotations

from ipaddress import ip_address

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
HTTP_PORT = 80
"""Clients leave this port out of the Host header."""


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """Return the values of Host, in lower case, that name a server at `host` and `port` of this machine."""
    written = f"[{host}]" if ":" in host else host
    names = (*LOOPBACK_NAMES, written.lower())
    without_port = names if port == HTTP_PORT else ()
    return frozenset((*(f"{name}:{port}" for name in names), *without_port))
