"""What `ottla doctor` finds in a data directory: facts in, findings out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.clusters.disks import human
from ottla.cli.doctor.findings import Finding, counted, few, ok, problem, warning
from ottla.cli.doctor.machine import disk_finding


class DataFacts(NamedTuple):
    """A directory that was named."""

    path: str
    unreadable: str | None = None
    """Why there is nothing to look at."""
    free: int = 0
    total: int = 0
    partitions: int = 0
    size: int = 0
    live: bool = False
    """Whether a broker has it."""
    closed: bool = True
    """Whether the one that had it ended in order, or has it still."""
    faults: Sequence[str] = ()
    thorough: bool = False
    """Whether every byte was read."""
    metadata: str = ""
    """The directory that tells the ids of topics, where it is another one."""


def data_findings(facts: DataFacts) -> list[Finding]:
    if facts.unreadable is not None:
        remedy = "name the directory of a broker's log.dirs, which has meta.properties"
        return [problem("data", facts.unreadable, remedy)]
    disk = disk_finding("disk", facts.path, facts.free, facts.total)
    return [disk, damage_finding(facts), *ending_findings(facts)]


def damage_finding(facts: DataFacts) -> Finding:
    how = "by every byte" if facts.thorough else "by headers alone; --verify reads every byte"
    if not facts.faults:
        what = f"{counted(facts.partitions, 'partition')}, {human(facts.size)}"
        return ok("data", f"{facts.path} is whole: {what} ({how})")
    seen = f"{counted(len(facts.faults), 'fault')} in {facts.path}: {few(facts.faults)}"
    stop = "stop the broker, then: " if facts.live else ""
    where = f"{facts.path} --metadata {facts.metadata}" if facts.metadata else facts.path
    return problem("data", seen, f"{stop}ottla log verify {where}, and ottla log repair {where}")


def ending_findings(facts: DataFacts) -> list[Finding]:
    if facts.closed:
        return []
    seen = f"the broker of {facts.path} did not end in order"
    return [
        warning("data", seen, "its next start reads the ends of logs again, and takes longer; end brokers with SIGTERM")
    ]
