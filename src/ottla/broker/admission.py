"""Who may connect: so many from one address, and so many in all that descriptors are left for the logs. Pure."""

from __future__ import annotations

import resource
import socket
from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.errors import ConfigError

LEAST_RESERVE = 64
RESERVED_PART = 8
"""One in so many descriptors is kept for files."""


class Admission:
    """Counts the connections of each address."""

    def __init__(self, most: int, overrides: Mapping[str, int]) -> None:
        self._most = most
        self._overrides = overrides
        self._count: Counter[str] = Counter()

    def most(self, host: str) -> int:
        """How many connections an address may have."""
        return self._overrides.get(host, self._most)

    def allow(self, most: int) -> None:
        """Let every address have so many from now on."""
        self._most = most

    def admit(self, host: str) -> bool:
        """Count a newcomer, unless its address has as many as it may."""
        if self._count[host] >= self.most(host):
            return False
        self._count[host] += 1
        return True

    def leave(self, host: str) -> None:
        """One of those that were admitted has gone."""
        self._count[host] -= 1
        if not self._count[host]:
            del self._count[host]


def read_overrides(texts: Iterable[str]) -> dict[str, int]:
    """Numeric address → limit, from `host:limit` texts; names are looked up. ConfigError where that cannot be read."""
    found: dict[str, int] = {}
    for text in texts:
        host, colon, most = text.rpartition(":")
        if not colon or not host or not most.isascii() or not most.isdigit():
            raise ConfigError(f"max.connections.per.ip.overrides = {text!r}: must be host:number, such as 10.0.0.5:200")
        for address in addresses_of(host.removeprefix("[").removesuffix("]")):
            found[address] = int(most)
    return found


def addresses_of(host: str) -> set[str]:
    """All numeric addresses of a host."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"max.connections.per.ip.overrides: cannot resolve {host!r}: {text}") from None
    return {str(sockaddr[0]) for _, _, _, _, sockaddr in found}


def affordable_connections(wanted: int) -> int:
    """As many as wanted, or as leave a reserve of descriptors: who runs out of them can open no log either."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(limit - max(LEAST_RESERVE, limit // RESERVED_PART), 1))
