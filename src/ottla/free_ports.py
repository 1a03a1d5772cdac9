"""Ports for servers that have to be told theirs before they start.

The kernel gives connections, and whoever asks for port 0, one of its ephemeral ports: such a port that was free a moment
ago may be another test's by the time a server comes for it, or comes back to it after a kill. Those beneath that range
are given to nobody who does not name them. Among those who do, the one who holds a port keeps it from the others.
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
"""Where the range starts unless the machine says otherwise."""

HOLDS = sys.platform == "linux"
"""Whether a socket that only has a port keeps it from everybody but who asks for just that port."""

_chance = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has, and that were not given here before."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    """See `free_ports`."""
    port, holder = claim("127.0.0.1")
    holder.close()
    return port


def claim(host: str) -> tuple[int, socket.socket]:
    """A port that nobody has or holds, and what holds it: until that is closed only a server that names the port gets it."""
    while True:
        port = _chance.randrange(LOWEST, first_ephemeral())
        if port in _given:
            continue
        with suppress(OSError):
            holder = held(host, port, alone=True)
            _given.add(port)
            return port, holder


def held(host: str, port: int, *, alone: bool) -> socket.socket:
    """What holds a port; OSError where a server has it, or, if it is to be held `alone`, anybody holds or has just had it."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    holder = socket.socket(found[0][0], socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, not alone)
        holder.bind(found[0][4])
        # As the server has it, which comes for the port beside this: of two who want it alone at once one has failed by now.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        holder.close()
        raise
    return holder


class HeldPorts:
    """Ports that servers begin with, go from and come back to; nobody else is given them meanwhile."""

    def __init__(self) -> None:
        self._holders: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def claim(self, host: str) -> int:
        """One that nobody has."""
        port, holder = claim(host)
        self._hold(holder)
        return port

    def keep(self, host: str, port: int) -> None:
        """That one, unless somebody has it: the server for which it is will say so."""
        with suppress(OSError):
            self._hold(held(host, port, alone=False))

    def close(self) -> None:
        """Hold none any more; may be called twice."""
        while self._holders:
            self._holders.pop().close()

    def _hold(self, holder: socket.socket) -> None:
        if HOLDS:
            self._holders.append(holder)
        else:
            holder.close()


def first_ephemeral() -> int:
    """Never so low that there is nothing beneath."""
    first = int(RANGE.read_text().split()[0]) if RANGE.exists() else EPHEMERAL
    return first if first > LOWEST + 1000 else EPHEMERAL
