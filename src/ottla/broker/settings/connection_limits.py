"""`max.connections.per.ip.overrides`: addresses that may have another number of connections."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from ottla.errors import ConfigError


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
