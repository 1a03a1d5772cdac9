"""Processor time of this process and all its descendants. Elapsed time is unreliable on a busy machine."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """Measures seconds of processor time since its creation."""

    def __init__(self) -> None:
        self.before = used_by_tree(os.getpid())

    def seconds(self) -> float:
        return used_by_tree(os.getpid()) - self.before


def used_by_tree(root: int) -> float:
    """Return the processor time in seconds of a process, its ended children and all its descendants."""
    parents: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
    tree, found = [root], 0.0
    while tree:
        pid = tree.pop()
        found += times.get(pid, 0.0)
        tree += parents.get(pid, [])
    return found
