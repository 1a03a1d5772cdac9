"""Evaluate the facts about the connections to brokers. Pure functions from facts to findings."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.cli.doctor.findings import Finding, format_few, ok, problem, warning

BEFORE = re.compile(r".*\(from bootstrap\.servers\): ", re.DOTALL)
REMEDY = re.compile(r"[;:,] (?=(?:set|take|name|look|write|check|use|add|create|renew|run) )")
"""Separates the problem from the remedy in a client's error message."""
NOT_PREFERRED = "check that the port belongs to a broker's listener, and that security.protocol matches it"
TOLERABLE_SECONDS, BAD_SECONDS = 1.0, 30.0
RELEASES: Sequence[tuple[int, str]] = (
    (1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6"), (15, "3.7"), (20, "3.8"),
    (21, "3.9"), (22, "4.0"), (26, "4.1"), (28, "4.2"), (30, "4.3"), (31, "4.4"),
)  # fmt: skip
"""The first metadata.version of Kafka's releases."""


class AddressFacts(NamedTuple):
    """The result of an attempt to connect to an address."""

    host: str
    port: int
    addresses: Sequence[str] = ()
    """The addresses that the name resolves to."""
    unresolved: str | None = None
    """The reason why the name does not resolve."""
    unreached: str | None = None
    """The reason why no connection was made."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if all addresses are loopback addresses, which mean every client's own machine."""
        return bool(self.addresses) and all(
            ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in self.addresses
        )

    @property
    def trouble(self) -> str | None:
        return self.unresolved or self.unreached


def bootstrap_finding(facts: AddressFacts, *, is_default: bool) -> Finding:
    """Report whether the bootstrap address can be reached."""
    if facts.unresolved is not None:
        remedy = "correct the name, or its entry in DNS or /etc/hosts"
        return problem("bootstrap", f"the name {facts.host!r} does not resolve: {facts.unresolved}", remedy)
    if facts.unreached is None:
        return ok("bootstrap", f"{facts} ({format_few(facts.addresses)}) accepts connections")
    if is_default:
        seen = f"no broker answers at the default address {facts}: {facts.unreached}"
        return warning(
            "bootstrap",
            seen,
            "give the address of a cluster with --bootstrap-server or --context, or start: ottla broker",
        )
    remedy = "check that the broker runs, that this is its port, and that no firewall blocks it"
    return problem("bootstrap", f"no broker answers at {facts}: {facts.unreached}", remedy)


def protocol_finding(error: str | None, protocol: str, *, is_default: bool) -> Finding:
    """Report whether the server speaks Kafka's protocol and accepts this client; `error` is the client's message."""
    if error is None:
        return ok("protocol", f"the server speaks Kafka's protocol over {protocol}")
    seen, remedy = split_remedy(BEFORE.sub("", error))
    return warning("protocol", seen, remedy) if is_default else problem("protocol", seen, remedy)


def split_remedy(sentence: str) -> tuple[str, str]:
    """Split an error message into problem and remedy."""
    pieces = REMEDY.split(sentence, maxsplit=1)
    return (pieces[0], pieces[1]) if len(pieces) == 2 else (sentence, NOT_PREFERRED)


def kind_finding(*, is_ottla: bool | None, metadata_version: int | None) -> Finding:
    """Report the kind of broker, as far as it is known."""
    release = next((name for first, name in reversed(RELEASES) if metadata_version and metadata_version >= first), None)
    runs = (
        f"metadata.version {metadata_version}, Kafka {release}'s" if release else "no metadata.version, as before KRaft"
    )
    if is_ottla is None:
        return ok("broker", f"its kind is unknown, since it does not show its configs; it runs {runs}")
    kind = "Ottla" if is_ottla else "Apache Kafka or compatible"
    return ok("broker", f"it is {kind} and runs {runs}")


def advertised_findings(brokers: Mapping[int, AddressFacts], asked: Iterable[AddressFacts]) -> list[Finding]:
    """Report whether the advertised addresses of brokers can be reached from here; clients connect to these."""
    asked_here = all(each.is_loopback for each in asked)
    found = [advertised_finding(number, facts, asked_here=asked_here) for number, facts in sorted(brokers.items())]
    wrong = [each for each in found if each is not None]
    if wrong:
        return wrong
    return [
        ok(
            "advertised",
            f"every broker can be reached at its advertised address: {format_few(map(str, brokers.values()))}",
        )
    ]


def advertised_finding(number: int, facts: AddressFacts, *, asked_here: bool) -> Finding | None:
    remedy = f"set advertised.listeners of broker {number} to an address that clients can reach"
    if facts.is_loopback and not asked_here:
        seen = f"broker {number} advertises {facts}, which is every client's own machine"
        return problem("advertised", seen, remedy)
    if facts.trouble is None:
        return None
    inside = "; is it the name of a container?" if facts.unresolved and "." not in facts.host else ""
    seen = f"broker {number} advertises {facts}, which cannot be reached from here: {facts.trouble}{inside}"
    return problem("advertised", seen, f"{remedy} (a separate listener for outside clients), or start it if it is down")


def clock_finding(ahead: float, spread: float) -> Finding:
    """Report the difference of the clocks: the broker's clock is `ahead` seconds ahead, plus or minus `spread`."""
    off = max(abs(ahead) - spread, 0.0)
    seen = f"the clock of the leading controller is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    remedy = "synchronize both with NTP: timestamps, retention and searches by time depend on clocks"
    if off > BAD_SECONDS:
        return problem("clock", seen, remedy)
    if off > TOLERABLE_SECONDS:
        return warning("clock", seen, remedy)
    return ok(
        "clock", f"the clocks of the leading controller and of this machine agree within {abs(ahead) + spread:.1f} s"
    )
