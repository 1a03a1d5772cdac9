"""Free ports for servers that need their ports before they start.

 The kernel assigns ephemeral ports to connections and for port 0. Such a port that was free a moment ago may be used by
another test when a server binds it, or binds it again after a kill. Ports below that range are only used by processes
that name them, and a socket bound to a port reserves it against these.
"""

from __future__ import annotations

import random
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

LOWEST = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL = 32_768
"""The default start of the ephemeral range."""

HOLDS = sys.platform == "linux"
"""True if a bound socket reserves its port against all processes that do not name it."""

_chance = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return ports that are neither in use nor returned before."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    """Return one free port; see `free_ports`."""
    port, holder = claim_port("127.0.0.1")
    holder.close()
    return port


def claim_port(host: str) -> tuple[int, socket.socket]:
    """Return a free port, and a socket that reserves it until it is closed, except against servers that name the port."""
    while True:
        port = _chance.randrange(LOWEST, first_ephemeral())
        if port in _given:
            continue
        with suppress(OSError):
            holder = hold_port(host, port, alone=True)
            _given.add(port)
            return port, holder


def hold_port(host: str, port: int, *, alone: bool) -> socket.socket:
    """Return a socket that reserves a port.

    Raise OSError if a server uses it or, with `alone`, if any process reserved it.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    holder = socket.socket(found[0][0], socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, not alone)
        holder.bind(found[0][4])
        # The option of the server, which binds the same port; of two reservations with `alone` one has failed at this
        # point.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        holder.close()
        raise
    return holder


class HeldPorts:
    """Ports that stay reserved while their servers restart."""

    def __init__(self) -> None:
        self._holders: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def claim_port(self, host: str) -> int:
        """Reserve a free port."""
        port, holder = claim_port(host)
        self._hold(holder)
        return port

    def hold_given_port(self, host: str, port: int) -> None:
        """Reserve a given port, unless it is in use: then its server will report the error."""
        with suppress(OSError):
            self._hold(hold_port(host, port, alone=False))

    def close(self) -> None:
        """Release all ports; may be called twice."""
        while self._holders:
            self._holders.pop().close()

    def _hold(self, holder: socket.socket) -> None:
        if HOLDS:
            self._holders.append(holder)
        else:
            holder.close()


def first_ephemeral() -> int:
    """Return the first ephemeral port, or the default if there are too few ports below it."""
    first = int(RANGE.read_text().split()[0]) if RANGE.exists() else EPHEMERAL
    return first if first > LOWEST + 1000 else EPHEMERAL
