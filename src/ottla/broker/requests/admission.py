"""Who may connect: so many from one address, and so many in all that descriptors are left for the logs. Pure."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Mapping

from ottla.storage.files.open_files import connections_of


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
    """Return as many as wanted, or as leave descriptors for logs and for everything else that is opened."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, connections_of(limit))


def what_to_raise() -> str:
    """What lets more connections in."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = "" if limit == resource.RLIM_INFINITY else f", or the limit of open files (ulimit -n), which is {limit}"
    return f"raise max.connections{files}"
