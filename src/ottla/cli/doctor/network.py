"""What `ottla doctor` finds between this machine and the brokers: facts in, findings out. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.cli.doctor.findings import Finding, few, ok, problem, warning

BEFORE = re.compile(r".*\(from bootstrap\.servers\): ", re.DOTALL)
REMEDY = re.compile(r"[;:,] (?=(?:set|take|name|look|write) )")
"""Where in a client's sentence what helps begins."""
ELSEWHERE = "see that the port is that of a broker's listener, and that security.protocol is that listener's"
TOLERABLE_SECONDS, BAD_SECONDS = 1.0, 30.0
RELEASES: Sequence[tuple[int, str]] = (
    (1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6"), (15, "3.7"), (20, "3.8"),
    (21, "3.9"), (22, "4.0"), (26, "4.1"), (28, "4.2"), (30, "4.3"),
)  # fmt: skip
"""The first metadata.version of Kafka's releases."""


class AddressFacts(NamedTuple):
    """What became of an attempt to reach a place."""

    host: str
    port: int
    addresses: Sequence[str] = ()
    """What its name stands for."""
    unresolved: str | None = None
    """Why its name stands for nothing."""
    unreached: str | None = None
    """Why nobody answers."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine, for whoever asks."""
        return bool(self.addresses) and all(
            ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in self.addresses
        )

    @property
    def trouble(self) -> str | None:
        return self.unresolved or self.unreached


def bootstrap_finding(facts: AddressFacts, *, is_default: bool) -> Finding:
    """Whether somebody is where the user said."""
    if facts.unresolved is not None:
        remedy = "correct the name, or see to DNS (or /etc/hosts)"
        return problem("bootstrap", f"the name {facts.host!r} stands for no address: {facts.unresolved}", remedy)
    if facts.unreached is None:
        return ok("bootstrap", f"{facts} ({few(facts.addresses)}) takes connections")
    if is_default:
        seen = f"nobody answers at {facts}, where brokers are unless somebody says otherwise: {facts.unreached}"
        return warning("bootstrap", seen, "name a cluster with --bootstrap-server or --context, or start: ottla broker")
    remedy = "see that the broker runs, that this is its port, and that no firewall is between"
    return problem("bootstrap", f"nobody answers at {facts}: {facts.unreached}", remedy)


def talk_finding(error: str | None, protocol: str, *, is_default: bool) -> Finding:
    """Whether who answers is a broker, and takes us; the sentence is the client's."""
    if error is None:
        return ok("protocol", f"Kafka's protocol is spoken, over {protocol}")
    seen, remedy = parted(BEFORE.sub("", error))
    return warning("protocol", seen, remedy) if is_default else problem("protocol", seen, remedy)


def parted(sentence: str) -> tuple[str, str]:
    """What is wrong, and what helps."""
    pieces = REMEDY.split(sentence, maxsplit=1)
    return (pieces[0], pieces[1]) if len(pieces) == 2 else (sentence, ELSEWHERE)


def kind_finding(*, is_ottla: bool | None, metadata_version: int | None) -> Finding:
    """What kind of broker it is, as far as it lets us know."""
    release = next((name for first, name in reversed(RELEASES) if metadata_version and metadata_version >= first), None)
    runs = (
        f"metadata.version {metadata_version}, Kafka {release}'s" if release else "no metadata.version, as before KRaft"
    )
    if is_ottla is None:
        return ok("broker", f"it does not show its configs, and so not what it is; it runs {runs}")
    who = "Ottla" if is_ottla else "Apache Kafka or its like"
    return ok("broker", f"it is {who}, and runs {runs}")


def advertised_findings(brokers: Mapping[int, AddressFacts], asked: Iterable[AddressFacts]) -> list[Finding]:
    """Whether what brokers call themselves leads to them from here: what clients use after the first question."""
    asked_here = all(each.is_loopback for each in asked)
    found = [advertised_finding(number, facts, asked_here=asked_here) for number, facts in sorted(brokers.items())]
    wrong = [each for each in found if each is not None]
    if wrong:
        return wrong
    return [ok("advertised", f"each broker is reached at what it calls itself: {few(map(str, brokers.values()))}")]


def advertised_finding(number: int, facts: AddressFacts, *, asked_here: bool) -> Finding | None:
    remedy = f"set advertised.listeners of broker {number} to an address that clients reach it by"
    if facts.is_loopback and not asked_here:
        seen = f"broker {number} calls itself {facts}, which is every client's own machine"
        return problem("advertised", seen, remedy)
    if facts.trouble is None:
        return None
    inside = "; is it the name of a container?" if facts.unresolved and "." not in facts.host else ""
    seen = f"broker {number} calls itself {facts}, where it is not reached from here: {facts.trouble}{inside}"
    return problem("advertised", seen, f"{remedy} (a listener of its own for those outside), or start it if it is down")


def clock_finding(ahead: float, spread: float) -> Finding:
    """How far a broker's clock is ahead of ours in seconds, give or take `spread`."""
    off = max(abs(ahead) - spread, 0.0)
    seen = f"the clock of the leading controller is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    remedy = "have both follow NTP: timestamps, retention and searches by time go by clocks"
    if off > BAD_SECONDS:
        return problem("clock", seen, remedy)
    if off > TOLERABLE_SECONDS:
        return warning("clock", seen, remedy)
    return ok(
        "clock", f"the clocks of the leading controller and of this machine agree within {abs(ahead) + spread:.1f} s"
    )
