"""Evaluate the facts about this machine. Pure functions from facts to findings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.doctor.findings import Finding, format_few, ok, problem, warning
from ottla.cli.tables import format_size

FEWEST_FILES = 4096
"""A broker opens one file per partition and one per connection."""
FULL_BYTES, TIGHT_BYTES, ROOMY_BYTES = 500 * 10**6, 5 * 10**9, 50 * 10**9
TIGHT_SHARE = 0.10
"""The share of a volume below which free space is tight, unless ROOMY_BYTES are free."""
BOUND = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([\d.]+)")


class Requirement(NamedTuple):
    """A package that an extra needs, and its installed version."""

    package: str
    bounds: str
    """Version bounds in the syntax of package metadata: `<27,>=17`."""
    installed: str | None
    """None if it is not installed."""


class MachineFacts(NamedTuple):
    """The facts about this machine."""

    python: str
    loops: int
    uncompiled: Sequence[str]
    extras: Mapping[str, Sequence[Requirement]]
    java: int | str | None
    """Its version, or the error; None without Spark."""
    open_files: tuple[float, float]
    """The soft and the hard limit of open files of a process."""


def machine_findings(facts: MachineFacts) -> list[Finding]:
    return [
        ok("python", f"Python {facts.python}"),
        loops_finding(facts.loops, facts.uncompiled),
        *extras_findings(facts.extras),
        *([] if facts.java is None else [java_finding(facts.java)]),
        files_finding(*facts.open_files),
    ]


def loops_finding(loops: int, uncompiled: Sequence[str]) -> Finding:
    if not uncompiled:
        return ok("hot loops", f"all {loops} hot loops are compiled")
    seen = f"{len(uncompiled)} of {loops} hot loops are not compiled, which makes them several times slower: {format_few(uncompiled)}"
    return warning("hot loops", seen, "install a C compiler and reinstall Ottla")


def extras_findings(extras: Mapping[str, Sequence[Requirement]]) -> list[Finding]:
    """Report the complete extras in one finding, and each incompatible package in another."""
    whole = {name: some for name, some in extras.items() if all(each.installed for each in some)}
    away = sorted(set(extras) - set(whole))
    packages = sorted({f"{each.package} {each.installed}" for some in whole.values() for each in some})
    text = f"{', '.join(whole)} ({', '.join(packages)})" if whole else "none is installed"
    found = [ok("extras", text + (f"; not installed: {', '.join(away)}" if away else ""))]
    wrong = {
        (each.package, each.bounds, str(each.installed)): name
        for name, some in extras.items()
        for each in some
        if each.installed and not is_version_in(each.installed, each.bounds)
    }
    return found + [
        warning("extras", f"{package} is {version}, and ottla[{name}] needs {bounds}", f"pip install 'ottla[{name}]'")
        for (package, bounds, version), name in wrong.items()
    ]


def is_version_in(version: str, bounds: str) -> bool:
    """Return true if a version satisfies the bounds; only its numbers are compared."""
    return all(
        is_within_bound(version_numbers(version), sign, version_numbers(bound)) for sign, bound in BOUND.findall(bounds)
    )


def is_within_bound(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    size = max(len(version), len(bound))
    here, there = (each + (0,) * (size - len(each)) for each in (version, bound))
    match sign:
        case ">=" | "~=":
            return here >= there
        case "<":
            return here < there
        case "<=":
            return here <= there
        case ">":
            return here > there
        case "==":
            return here == there
    return here != there


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version: (4, 2, 0) for `4.2.0.dev1`."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def java_finding(java: int | str) -> Finding:
    """Report the Java version. The text of an error has its remedy after the semicolon."""
    if isinstance(java, int):
        return ok("java", f"Spark will use Java {java}")
    seen, _, remedy = java.partition("; ")
    return warning("java", seen, remedy)


def files_finding(now: float, most: float) -> Finding:
    if most >= FEWEST_FILES:
        return ok("open files", f"a process may open {now:.0f} files, and a broker raises that to {most:.0f}")
    seen = f"a process may open {most:.0f} files and no more: each partition and each connection of a broker takes one"
    return warning("open files", seen, "raise it: ulimit -n 65536, or LimitNOFILE=65536 in its systemd unit")


def disk_finding(check: str, where: str, free: int, total: int) -> Finding:
    """Report the free space of a volume."""
    seen = f"{format_size(free)} of {format_size(total)} are free for {where}"
    remedy = "make room: shorten retention.ms or retention.bytes of large topics (ottla cluster log-dirs), or add disk"
    if free < FULL_BYTES:
        return problem(check, seen, remedy)
    is_tight = free < TIGHT_BYTES or (free < ROOMY_BYTES and free < TIGHT_SHARE * total)
    return warning(check, seen, remedy) if is_tight else ok(check, seen)
