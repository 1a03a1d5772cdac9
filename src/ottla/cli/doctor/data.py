"""Evaluate the facts about a data directory. Pure functions from facts to findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.counts import format_count
from ottla.cli.doctor.findings import Finding, format_few, ok, problem, warning
from ottla.cli.doctor.machine import disk_finding
from ottla.cli.tables import format_size


class DataFacts(NamedTuple):
    """The facts about a given directory."""

    path: str
    unreadable: str | None = None
    """The reason why it could not be checked."""
    free: int = 0
    total: int = 0
    partitions: int = 0
    size: int = 0
    live: bool = False
    """True if a running broker uses it."""
    closed: bool = True
    """True if its last broker shut down cleanly or still runs."""
    faults: Sequence[str] = ()
    thorough: bool = False
    """True if every byte was read."""
    metadata: str = ""
    """The directory with the topic ids, if it is another one."""


def data_findings(facts: DataFacts) -> list[Finding]:
    if facts.unreadable is not None:
        remedy = "name the directory of a broker's log.dirs, which has meta.properties"
        return [problem("data", facts.unreadable, remedy)]
    disk = disk_finding("disk", facts.path, facts.free, facts.total)
    return [disk, damage_finding(facts), *shutdown_findings(facts)]


def damage_finding(facts: DataFacts) -> Finding:
    how = "by every byte" if facts.thorough else "by headers alone; --verify reads every byte"
    if not facts.faults:
        what = f"{format_count(facts.partitions, 'partition')}, {format_size(facts.size)}"
        return ok("data", f"{facts.path} is whole: {what} ({how})")
    seen = f"{format_count(len(facts.faults), 'fault')} in {facts.path}: {format_few(facts.faults)}"
    stop = "stop the broker, then: " if facts.live else ""
    where = f"{facts.path} --metadata {facts.metadata}" if facts.metadata else facts.path
    return problem("data", seen, f"{stop}ottla log verify {where}, and ottla log repair {where}")


def shutdown_findings(facts: DataFacts) -> list[Finding]:
    if facts.closed:
        return []
    seen = f"the broker of {facts.path} did not shut down cleanly"
    return [
        warning("data", seen, "its next start recovers the ends of logs and takes longer; stop brokers with SIGTERM")
    ]
