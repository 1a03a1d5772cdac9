"""Resolve host names without blocking the network loop.

Numeric addresses are returned at once. Names are resolved in a separate thread, because a resolver may need seconds to
fail.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import NamedTuple

UNRESOLVED = "cannot resolve the host name"
"""The beginning of the reason for a failed resolution."""


class ResolvedAddress(NamedTuple):
    """One address of a host."""

    family: int
    sockaddr: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def parse_numeric(host: str, port: int) -> list[ResolvedAddress]:
    """Return the address if `host` is numeric; an empty list for a name."""
    try:
        return lookup_addresses(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []


def lookup_addresses(host: str, port: int, flags: int = 0) -> list[ResolvedAddress]:
    """Return all addresses of `host` in the order to try them; may block for seconds."""
    found = socket.getaddrinfo(strip_scope(host), port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(ResolvedAddress(family, sockaddr) for family, _, _, _, sockaddr in found))


def strip_scope(host: str) -> str | bytes:
    """Return an ASCII host as bytes; for text Python would import its IDNA codec first."""
    return host.encode() if host.isascii() else host


def resolve(host: str, port: int, then: Callable[[list[ResolvedAddress], str], None]) -> None:
    """Resolve `host` in a thread, which calls `then(addresses, reason)`; the reason is empty unless it failed."""

    def work() -> None:
        try:
            addresses, reason = lookup_addresses(host, port), ""
        except (OSError, UnicodeError, OverflowError) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            addresses, reason = [], f"{UNRESOLVED} {host!r}: {text}"
        then(addresses, reason)

    threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()
