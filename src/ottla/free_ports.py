"""Ports for servers that have to be told theirs before they start.

The kernel gives connections, and whoever asks for port 0, one of its ephemeral ports: such a port that was free a moment
ago may be another test's by the time a server comes for it, or comes back to it after a kill. Those beneath that range
are given to nobody who does not name them.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL = 32_768
"""Where the range starts unless the machine says otherwise."""

_chance = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has, and that were not given here before."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    """See `free_ports`."""
    while True:
        port = _chance.randrange(LOWEST, first_ephemeral())
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def first_ephemeral() -> int:
    """Never so low that there is nothing beneath."""
    first = int(RANGE.read_text().split()[0]) if RANGE.exists() else EPHEMERAL
    return first if first > LOWEST + 1000 else EPHEMERAL


def is_free(port: int) -> bool:
    """Whether a server could have it."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
