"""Limits on connections: for each address, and in total, so that file descriptors remain for the logs. Pure."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Mapping

from ottla.storage.files.open_files import connections_of


class ConnectionLimits:
    """Counts the connections of each address."""

    def __init__(self, most: int, overrides: Mapping[str, int]) -> None:
        self._most = most
        self._overrides = overrides
        self._count: Counter[str] = Counter()

    def find_limit(self, host: str) -> int:
        """Return the maximum number of connections of an address."""
        return self._overrides.get(host, self._most)

    def set_limits(self, most: int) -> None:
        """Set the number of connections that an address without an override may have."""
        self._most = most

    def admit(self, host: str) -> bool:
        """Count a new connection. False if its address has reached its limit."""
        if self._count[host] >= self.find_limit(host):
            return False
        self._count[host] += 1
        return True

    def release(self, host: str) -> None:
        """Stop counting a connection that was admitted."""
        self._count[host] -= 1
        if not self._count[host]:
            del self._count[host]


def affordable_connections(wanted: int) -> int:
    """Return the number of connections, at most `wanted`, that leaves enough file descriptors for logs and files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, connections_of(limit))


def describe_remedy() -> str:
    """Return the advice for a broker that has reached its limit of connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = "" if limit == resource.RLIM_INFINITY else f", or the limit of open files (ulimit -n), which is {limit}"
    return f"raise max.connections{files}"
