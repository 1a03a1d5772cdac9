"""The addresses a client starts from.

Only reads the text: names are looked up when a connection is opened, but for those that are to be made canonical.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

from ottla.config import refuse_credentials
from ottla.errors import ConfigError
from ottla.model import Node

DEFAULT_PORT = 9092
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
REMEDY = "write host:port, such as 127.0.0.1:9092"
LOGIN = "write host:port, and set security.protocol, sasl.mechanism, sasl.username and sasl.password"


CANONICAL = "resolve_canonical_bootstrap_servers_only"


def bootstrap_nodes(
    servers: Iterable[str],
    dns_lookup: str = "",
    names_of: Callable[[str], list[str]] | None = None,
    protocol: str = "PLAINTEXT",
) -> tuple[Node, ...]:
    """Return a node for each of `bootstrap.servers`; the ids are negative because the real ones are not known yet.

    `protocol` is security.protocol: a server written with a protocol must have the same. With `client.dns.lookup` =
    resolve_canonical_bootstrap_servers_only, return a node for each canonical name.
    """
    servers = list(servers)
    refuse_credentials("bootstrap.servers", servers, LOGIN)
    addresses = list(dict.fromkeys(parse_address(server, protocol) for server in servers))
    if not addresses:
        raise ConfigError(f"bootstrap.servers is empty: {REMEDY}")
    if dns_lookup == CANONICAL:
        names_of = names_of or canonical_names
        addresses = list(dict.fromkeys((name, port) for host, port in addresses for name in names_of(host)))
    return tuple(Node(-1 - i, host, port) for i, (host, port) in enumerate(addresses))


def canonical_names(host: str) -> list[str]:
    """Return the canonical name of each address of a host; the host itself if the lookup fails."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(socket.getnameinfo(address, 0)[0] for *_, address in found))
    except OSError:
        return [host]


def parse_address(text: str, protocol: str = "PLAINTEXT") -> tuple[str, int]:
    """`host:port` or `[ipv6]:port`, 9092 where no port is named; the protocol in front (`SASL_SSL://`) is allowed."""
    refuse_credentials("bootstrap.servers", [text], LOGIN)
    scheme, mark, rest = text.strip().rpartition("://")
    if mark and scheme.upper() != protocol:
        remedy = f"set security.protocol={scheme.upper()}" if scheme.upper() in PROTOCOLS else REMEDY
        raise ConfigError(f"bootstrap.servers = {text!r}: security.protocol is {protocol}; {remedy}")
    if ":" not in rest or rest.endswith("]"):
        rest = f"{rest}:{DEFAULT_PORT}"
    host, colon, port = rest.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host, ambiguous = (host[1:-1], False) if bracketed else (host, ":" in host)
    if (
        ambiguous
        or not colon
        or not host
        or not port.isdecimal()
        or not 0 < int(port) < 65536
        or any(c in host for c in "/ ")
    ):
        raise ConfigError(f"bootstrap.servers = {text!r}: {REMEDY}")
    return host, int(port)
