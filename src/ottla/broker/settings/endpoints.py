"""The addresses of a broker: where it listens, and where clients connect, by the names of its listeners.

Parses the settings `listeners`, `advertised.listeners` and `listener.security.protocol.map`. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.config import refuse_credentials, unknown
from ottla.errors import ConfigError
from ottla.ports import is_port

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANY_HOST = {"", "0.0.0.0", "::"}
"""Hosts that mean every address of this machine: to listen on, not to connect to."""
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The loopback address of a listener on every address."""


class Endpoint(NamedTuple):
    """A listener: its name, and the address where it listens or is advertised."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{join_address(self.host, self.port)}"


def join_address(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reached_from_here(host: str, port: int) -> str:
    """Return an address for clients on this machine."""
    return join_address(LOOPBACK.get(host, host), port)


def parse_listeners(listeners: str, protocols: str = "", elsewhere: Collection[str] = ()) -> tuple[Endpoint, ...]:
    """Parse the addresses to listen on: `NAME://host:port` or `host:port`, with commas between.

    Addresses without a name are PLAINTEXT, PLAINTEXT2 and so on. Names `elsewhere` (a controller's, in a file that was
    written for Kafka) are skipped. Raise ConfigError if an address is malformed.
    """
    found: dict[str, Endpoint] = {}
    for each in read_endpoints("listeners", listeners, lambda: fresh_name(found)):
        if each.name in elsewhere:
            continue
        if each.name in found:
            raise ConfigError(f"listeners = {listeners!r}: {each.name} is listed twice; use different names")
        check_overlap(listeners, each, found.values())
        found[each.name] = each
    if not found:
        raise ConfigError(f"listeners = {listeners!r}: clients need one to connect to, such as 127.0.0.1:9092")
    map_protocols(found, protocols)
    return tuple(found.values())


def parse_advertised(text: str, listeners: Iterable[Endpoint], elsewhere: Collection[str] = ()) -> dict[str, Endpoint]:
    """Return the address for clients of each listener that has one.

    Clients of the others use the address of their first connection.
    """
    names = [each.name for each in listeners]
    found: dict[str, Endpoint] = {}
    for each in read_endpoints("advertised.listeners", text, lambda: names[len(found)] if names[len(found) :] else ""):
        if each.name in elsewhere:
            continue
        if each.name not in names:
            raise ConfigError(f"advertised.listeners = {text!r}: {unknown('listener', each.name, names)}")
        if each.name in found:
            raise ConfigError(f"advertised.listeners = {text!r}: {each.name} is listed twice; list it once")
        if each.host in ANY_HOST or not each.port:
            raise ConfigError(f"advertised.listeners = {text!r}: clients need a host and a port to connect to")
        found[each.name] = each
    return found


def read_controllers(text: str) -> list[tuple[str, int]]:
    """Return the addresses in `controller.quorum.bootstrap.servers`."""
    found = []
    refuse_credentials("controller.quorum.bootstrap.servers", text.split(","), "write HOST:PORT")
    for each in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = each.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"controller.quorum.bootstrap.servers = {text!r}: {each!r} must be HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ConfigError(f"controller.quorum.bootstrap.servers = {text!r}: name at least one, HOST:PORT")
    return found


def fresh_name(taken: Collection[str]) -> str:
    """Return the name of an address without one."""
    number = 1 + sum(name.startswith(PLAINTEXT) for name in taken)
    return PLAINTEXT if number == 1 else f"{PLAINTEXT}{number}"


def read_endpoints(setting: str, text: str, unnamed: Callable[[], str]) -> Iterator[Endpoint]:
    """Yield the addresses in a setting."""
    for part in filter(None, map(str.strip, text.split(","))):
        name, there, address = part.rpartition("://")
        if there and not name:
            raise ConfigError(f"{setting} = {text!r}: the listener has no name before ://")
        host, port = parse_address(setting, text, address)
        yield Endpoint(name.upper() or unnamed(), host, port)


def parse_address(setting: str, text: str, address: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[::1]:9092`."""
    host, colon, port = address.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or bare_ipv6 or not is_port(port):
        raise ConfigError(f"{setting} = {text!r}: must be host:port, such as 127.0.0.1:9092 or [::1]:9092")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_overlap(text: str, new: Endpoint, others: Iterable[Endpoint]) -> None:
    """Raise ConfigError if one of two listeners could never be opened."""
    for other in others:
        same = new.host == other.host or ANY_HOST & {new.host, other.host}
        if new.port and new.port == other.port and same:
            raise ConfigError(
                f"listeners = {text!r}: {other.name} and {new.name} have the same port; use different ports"
            )


def read_protocols(text: str) -> dict[str, str]:
    """Return security protocols by listener name, from `NAME:PROTOCOL,…`."""
    protocols: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, protocol = part.partition(":")
        if not colon or not name or not protocol:
            raise ConfigError(f"listener.security.protocol.map = {text!r}: must be NAME:PROTOCOL, with commas between")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def map_protocols(listeners: Iterable[str], protocols: str) -> dict[str, str]:
    """Return the protocol of each listener. Raise ConfigError if it is missing or unknown."""
    named = read_protocols(protocols)
    found = {name: named.get(name) or implied_protocol(name, named) for name in listeners}
    for name, protocol in found.items():
        if name not in named and looks_secured(name) and protocol == PLAINTEXT:
            raise ConfigError(
                f"listener {name} has no security protocol: correct its name ({', '.join(PROTOCOLS[1:])}), or add it to "
                f"listener.security.protocol.map, such as {name}:SASL_SSL"
            )
        if not protocol:
            raise ConfigError(
                f"listener {name} has no security protocol: add it to listener.security.protocol.map, such as {name}:PLAINTEXT"
            )
        if protocol not in PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map: {unknown('protocol', protocol, PROTOCOLS)}")
    return found


def looks_secured(name: str) -> bool:
    """Return True for a name that seems to select TLS or logins, such as the misspelt SASL_SLL. It must not become PLAINTEXT."""
    return any(word in name for word in ("SSL", "SASL", "TLS")) and name not in PROTOCOLS


def implied_protocol(name: str, protocols: Mapping[str, str]) -> str:
    """Return the protocol of a listener that the map does not name: the one of its name, or PLAINTEXT without a map."""
    if name in PROTOCOLS:
        return name
    return "" if protocols and not name.startswith(PLAINTEXT) else PLAINTEXT
