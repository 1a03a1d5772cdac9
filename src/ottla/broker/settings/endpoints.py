"""The addresses of a broker: where it listens, and what clients are told, by the names of its listeners.

Reads the settings `listeners`, `advertised.listeners` and `listener.security.protocol.map`; opens nothing.
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
"""Every address of this machine: to listen on, not to connect to."""
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""What reaches who listens on every address."""


class Endpoint(NamedTuple):
    """One listener: its name, and where it listens or is advertised."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{joined(self.host, self.port)}"


def joined(host: str, port: int) -> str:
    """An address as it is written: an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reached_from_here(host: str, port: int) -> str:
    """An address for clients on this machine."""
    return joined(LOOPBACK.get(host, host), port)


def listening(listeners: str, protocols: str = "", elsewhere: Collection[str] = ()) -> tuple[Endpoint, ...]:
    """Where to listen: `NAME://host:port` or `host:port`, with commas between.

    Addresses without a name are PLAINTEXT, PLAINTEXT2 and so on. Names `elsewhere` (a controller's, in a file that was
    written for Kafka) are passed over. ConfigError says what does not fit.
    """
    found: dict[str, Endpoint] = {}
    for each in read_endpoints("listeners", listeners, lambda: fresh_name(found)):
        if each.name in elsewhere:
            continue
        if each.name in found:
            raise ConfigError(f"listeners = {listeners!r}: {each.name} is there twice; give each a name of its own")
        check_overlap(listeners, each, found.values())
        found[each.name] = each
    if not found:
        raise ConfigError(f"listeners = {listeners!r}: clients need one to connect to, such as 127.0.0.1:9092")
    protocols_of(found, protocols)
    return tuple(found.values())


def advertised(text: str, listeners: Iterable[Endpoint], elsewhere: Collection[str] = ()) -> dict[str, Endpoint]:
    """What clients are told, by the name of the listener by which they came; others are told the address they used."""
    names = [each.name for each in listeners]
    found: dict[str, Endpoint] = {}
    for each in read_endpoints("advertised.listeners", text, lambda: names[len(found)] if names[len(found) :] else ""):
        if each.name in elsewhere:
            continue
        if each.name not in names:
            raise ConfigError(f"advertised.listeners = {text!r}: {unknown('listener', each.name, names)}")
        if each.name in found:
            raise ConfigError(f"advertised.listeners = {text!r}: {each.name} is there twice; give it once")
        if each.host in ANY_HOST or not each.port:
            raise ConfigError(f"advertised.listeners = {text!r}: clients need a host and a port to connect to")
        found[each.name] = each
    return found


def read_controllers(text: str) -> list[tuple[str, int]]:
    """The addresses in `controller.quorum.bootstrap.servers`."""
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
    """The name of an address that came without one."""
    number = 1 + sum(name.startswith(PLAINTEXT) for name in taken)
    return PLAINTEXT if number == 1 else f"{PLAINTEXT}{number}"


def read_endpoints(setting: str, text: str, unnamed: Callable[[], str]) -> Iterator[Endpoint]:
    """The addresses in a setting, one by one."""
    for part in filter(None, map(str.strip, text.split(","))):
        name, there, address = part.rpartition("://")
        if there and not name:
            raise ConfigError(f"{setting} = {text!r}: the listener has no name before ://")
        host, port = parse_address(setting, text, address)
        yield Endpoint(name.upper() or unnamed(), host, port)


def parse_address(setting: str, text: str, address: str) -> tuple[str, int]:
    """Host and port from `host:port` or `[::1]:9092`."""
    host, colon, port = address.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or bare_ipv6 or not is_port(port):
        raise ConfigError(f"{setting} = {text!r}: must be host:port, such as 127.0.0.1:9092 or [::1]:9092")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_overlap(text: str, new: Endpoint, others: Iterable[Endpoint]) -> None:
    """Refuse two listeners of which the second could never be opened."""
    for other in others:
        same = new.host == other.host or ANY_HOST & {new.host, other.host}
        if new.port and new.port == other.port and same:
            raise ConfigError(
                f"listeners = {text!r}: {other.name} and {new.name} want the same port; give each its own"
            )


def read_protocols(text: str) -> dict[str, str]:
    """Listener name → security protocol, from `NAME:PROTOCOL,…`."""
    protocols: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, protocol = part.partition(":")
        if not colon or not name or not protocol:
            raise ConfigError(f"listener.security.protocol.map = {text!r}: must be NAME:PROTOCOL, with commas between")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def protocols_of(listeners: Iterable[str], protocols: str) -> dict[str, str]:
    """What each listener speaks; ConfigError where that is not said, or is nothing that is known."""
    named = read_protocols(protocols)
    found = {name: named.get(name) or implied_protocol(name, named) for name in listeners}
    for name, protocol in found.items():
        if not protocol:
            raise ConfigError(
                f"listener {name} has no protocol: name it in listener.security.protocol.map, as {name}:PLAINTEXT"
            )
        if protocol not in PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map: {unknown('protocol', protocol, PROTOCOLS)}")
    return found


def implied_protocol(name: str, protocols: Mapping[str, str]) -> str:
    """What a listener speaks that the map does not name: its name may say it, and without a map all speak the same."""
    if name in PROTOCOLS:
        return name
    return "" if protocols and not name.startswith(PLAINTEXT) else PLAINTEXT
