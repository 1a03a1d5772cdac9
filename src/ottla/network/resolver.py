"""Host names to addresses without holding up the network loop.

Numeric addresses are answered at once; names are looked up in a thread of their own, because a resolver may take
seconds to say no.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import NamedTuple


class Address(NamedTuple):
    """One way to reach a host."""

    family: int
    sockaddr: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def numeric(host: str, port: int) -> list[Address]:
    """The address that `host` spells out; empty when it is a name."""
    try:
        return look_up(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []


def look_up(host: str, port: int, flags: int = 0) -> list[Address]:
    """Every address of `host`, in the order to try them; may block for seconds."""
    found = socket.getaddrinfo(plain(host), port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(Address(family, sockaddr) for family, _, _, _, sockaddr in found))


def plain(host: str) -> str | bytes:
    """The same host as bytes where it is ASCII: as text Python would load its codec for international names first."""
    return host.encode() if host.isascii() else host


def resolve(host: str, port: int, then: Callable[[list[Address], str], None]) -> None:
    """Look `host` up in a thread, which calls `then(addresses, reason)`; the reason tells why there are none."""

    def work() -> None:
        try:
            addresses, reason = look_up(host, port), ""
        except (OSError, UnicodeError, OverflowError) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            addresses, reason = [], f"cannot resolve the host name {host!r}: {text}"
        then(addresses, reason)

    threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()
