"""Run contenders on the same work in turns, and compare them by the median of the ratios.

The speed of a machine changes from minute to minute. So contenders run in turns, and ratios are computed for each
round, in which both sides have the same conditions. Processor time is read from the kernel's accounting of the
processes.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LIMIT = 0.95
"""A client that uses more of a core than this was the limit: the server could have done more."""


class Contender(NamedTuple):
    """A named piece of work to compare."""

    name: str
    run: Callable[[], int]
    """Does the work and returns the number of records (or of another unit) that it did."""
    server: int | None = None
    """The server process. Its processor time is printed next to that of this process."""


class Heat(NamedTuple):
    """The result of one contender in one round."""

    rate: float
    """Units per second."""
    client_cores: float
    server_cores: float
    """Cores in use by the server process, NaN if there is none."""


def race(
    title: str, contenders: Sequence[Contender], *, unit: str = "records/s", rounds: int = 5, warm: int = 1
) -> None:
    """Run all in turns after `warm` uncounted rounds, and print the table.

    Ratios are relative to the last contender.
    """
    for _ in range(warm):
        for contender in contenders:
            contender.run()
    # Every library is loaded in this process. No contender should pay for their garbage collection.
    gc.collect()
    gc.freeze()
    heats: list[list[Heat]] = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, results in zip(contenders, heats, strict=True):
            results.append(heat(contender))
    show(table(title, contenders, heats, unit))


def heat(contender: Contender) -> Heat:
    """Run one turn of a contender."""
    server, own, clock = cpu_seconds(contender.server), time.process_time(), time.perf_counter()
    done = contender.run()
    span = time.perf_counter() - clock
    return Heat(done / span, (time.process_time() - own) / span, (cpu_seconds(contender.server) - server) / span)


def cpu_seconds(process: int | None) -> float:
    """Return the processor time that a process has used so far, including its threads; NaN without a process."""
    if process is None:
        return float("nan")
    # The command's name, in parentheses, may contain spaces; the fields after it do not. utime and stime are fields 14
    # and 15.
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(process: int) -> int:
    """Return the private resident memory of a process, without the pages of mapped files."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def table(title: str, contenders: Sequence[Contender], heats: Sequence[Sequence[Heat]], unit: str) -> Table:
    """Build the table of medians, and of the median ratio to the last contender."""
    shown = Table(title=title, title_justify="left")
    for heading, justify in (
        ("", "left"),
        (unit, "right"),
        ("ratio", "right"),
        ("client", "right"),
        ("server", "right"),
    ):
        shown.add_column(heading, justify="right" if justify == "right" else "left")
    for contender, results in zip(contenders, heats, strict=True):
        ratio = statistics.median(ours.rate / theirs.rate for ours, theirs in zip(results, heats[-1], strict=True))
        client = statistics.median(result.client_cores for result in results)
        server = statistics.median(result.server_cores for result in results)
        rate = statistics.median(result.rate for result in results)
        limit = " (limit)" if client > LIMIT else ""
        shown.add_row(contender.name, f"{rate:,.0f}", f"{ratio:.2f}", f"{client:.0%}{limit}", share(server))
    return shown


def share(cores: float) -> str:
    """Format cores as a percentage of one core. Empty if they were not measured."""
    return "" if cores != cores else f"{cores:.0%}"


def show(printed: Table) -> None:
    """Print a table. It is 120 columns wide if the output is not a terminal."""
    console = Console()
    Console(width=console.width if console.is_terminal else 120).print(printed)
