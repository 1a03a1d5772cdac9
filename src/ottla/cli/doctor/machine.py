"""What `ottla doctor` finds on this machine: facts in, findings out. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.clusters.disks import human
from ottla.cli.doctor.findings import Finding, few, ok, problem, warning

FEWEST_FILES = 4096
"""A broker takes one for each partition and each connection."""
FULL_BYTES, TIGHT_BYTES, ROOMY_BYTES = 500 * 10**6, 5 * 10**9, 50 * 10**9
TIGHT_SHARE = 0.10
"""Of a volume, unless what is free is much all the same."""
BOUND = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([\d.]+)")


class Requirement(NamedTuple):
    """A package that an extra needs."""

    package: str
    bounds: str
    """As in a package's metadata: `<27,>=17`."""
    installed: str | None
    """Its version; None where it is not there."""


class MachineFacts(NamedTuple):
    """All that was looked at."""

    python: str
    loops: int
    uncompiled: Sequence[str]
    extras: Mapping[str, Sequence[Requirement]]
    java: int | str | None
    """Its version, or what is wrong with it; None where there is no Spark that would need it."""
    open_files: tuple[float, float]
    """What a process may open, and what it may raise that to."""


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
    seen = f"{len(uncompiled)} of {loops} hot loops are not compiled, which makes them several times slower: {few(uncompiled)}"
    return warning("hot loops", seen, "install a C compiler and reinstall Ottla")


def extras_findings(extras: Mapping[str, Sequence[Requirement]]) -> list[Finding]:
    """What is there in one finding, and one for each package that does not go with Ottla."""
    whole = {name: some for name, some in extras.items() if all(each.installed for each in some)}
    away = sorted(set(extras) - set(whole))
    packages = sorted({f"{each.package} {each.installed}" for some in whole.values() for each in some})
    text = f"{', '.join(whole)} ({', '.join(packages)})" if whole else "none is installed"
    found = [ok("extras", text + (f"; not installed: {', '.join(away)}" if away else ""))]
    wrong = {
        (each.package, each.bounds, str(each.installed)): name
        for name, some in extras.items()
        for each in some
        if each.installed and not fits(each.installed, each.bounds)
    }
    return found + [
        warning("extras", f"{package} is {version}, and ottla[{name}] needs {bounds}", f"pip install 'ottla[{name}]'")
        for (package, bounds, version), name in wrong.items()
    ]


def fits(version: str, bounds: str) -> bool:
    """Whether a version lies within bounds, as far as numbers tell."""
    return all(within(numbers(version), sign, numbers(bound)) for sign, bound in BOUND.findall(bounds))


def within(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
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


def numbers(text: str) -> tuple[int, ...]:
    """(4, 2, 0) from `4.2.0.dev1`."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def java_finding(java: int | str) -> Finding:
    """A sentence of Spark's part has what is wrong before its semicolon, and behind it what helps."""
    if isinstance(java, int):
        return ok("java", f"Spark will use Java {java}")
    seen, _, remedy = java.partition("; ")
    return warning("java", seen, remedy)


def files_finding(now: float, most: float) -> Finding:
    if most >= FEWEST_FILES:
        return ok("open files", f"a process may open {now:.0f} files, and a broker raises that to {most:.0f}")
    seen = f"a process may open {most:.0f} files and no more: each partition and each connection of a broker takes one"
    return warning("open files", seen, "raise it: ulimit -n 65536, or LimitNOFILE=65536 in its unit of systemd")


def disk_finding(check: str, where: str, free: int, total: int) -> Finding:
    """How full a volume is."""
    seen = f"{human(free)} of {human(total)} are free for {where}"
    remedy = "make room: shorten retention.ms or retention.bytes of large topics (ottla cluster log-dirs), or add disk"
    if free < FULL_BYTES:
        return problem(check, seen, remedy)
    is_tight = free < TIGHT_BYTES or (free < ROOMY_BYTES and free < TIGHT_SHARE * total)
    return warning(check, seen, remedy) if is_tight else ok(check, seen)
