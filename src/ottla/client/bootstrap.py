"""The addresses a client starts from.

Only reads the text: names are looked up when a connection is opened.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.errors import ConfigError
from ottla.model import Node

REMEDY = "write host:port, such as 127.0.0.1:9092"


def bootstrap_nodes(servers: Iterable[str]) -> tuple[Node, ...]:
    """A node for each of `bootstrap.servers`; their ids are negative because nobody knows the real ones yet."""
    addresses = list(dict.fromkeys(parse_address(server) for server in servers))
    if not addresses:
        raise ConfigError(f"bootstrap.servers is empty: {REMEDY}")
    return tuple(Node(-1 - i, host, port) for i, (host, port) in enumerate(addresses))


def parse_address(text: str) -> tuple[str, int]:
    """`host:port` or `[ipv6]:port`; a listener name in front (`PLAINTEXT://`) is allowed."""
    scheme, mark, rest = text.strip().rpartition("://")
    if mark and scheme.upper() != "PLAINTEXT":
        raise ConfigError(f"bootstrap.servers = {text!r}: Ottla connects by PLAINTEXT only so far; {REMEDY}")
    host, colon, port = rest.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536 or any(c in host for c in "/ @"):
        raise ConfigError(f"bootstrap.servers = {text!r}: {REMEDY}")
    return host, int(port)
