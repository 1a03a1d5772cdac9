"""Who may connect: so many from one address, and so many in all that descriptors are left for the logs. Pure."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Mapping

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


def affordable_connections(wanted: int) -> int:
    """As many as wanted, or as leave a reserve of descriptors: who runs out of them can open no log either."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(limit - max(LEAST_RESERVE, limit // RESERVED_PART), 1))


def what_to_raise() -> str:
    """What lets more connections in."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = "" if limit == resource.RLIM_INFINITY else f", or the limit of open files (ulimit -n), which is {limit}"
    return f"raise max.connections{files}"
