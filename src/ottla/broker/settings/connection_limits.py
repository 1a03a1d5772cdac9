"""`max.connections.per.ip.overrides`: the limits of connections for single addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from ottla.errors import ConfigError


def read_overrides(texts: Iterable[str]) -> dict[str, int]:
    """Return limits by numeric address, from `host:limit` texts; host names are resolved.

    ConfigError if a text is malformed, or a name cannot be resolved.
    """
    found: dict[str, int] = {}
    for text in texts:
        host, colon, most = text.rpartition(":")
        if not colon or not host or not most.isascii() or not most.isdigit():
            raise ConfigError(f"max.connections.per.ip.overrides = {text!r}: must be host:number, such as 10.0.0.5:200")
        for address in resolve_addresses(host.removeprefix("[").removesuffix("]")):
            found[address] = int(most)
    return found


def resolve_addresses(host: str) -> set[str]:
    """Return all numeric addresses of a host."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"max.connections.per.ip.overrides: cannot resolve {host!r}: {text}") from None
    return {str(sockaddr[0]) for _, _, _, _, sockaddr in found}
