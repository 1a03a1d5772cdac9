"""A race: contenders do the same work in turns, and the median of the ratios is what counts.

In turns, because a machine is quicker in one minute than in the next; ratios of each round, because both sides of
a ratio then had the same minute. Processor time is read from the accounts of the processes, not from the clock.
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
"""A client that uses more of a core than this was the limit, and the server could have done more."""


class Contender(NamedTuple):
    """Who races."""

    name: str
    run: Callable[[], int]
    """Does the work and returns how many records (or whatever the unit is) it did."""
    server: int | None = None
    """The process whose processor time is shown beside this process's own."""


class Heat(NamedTuple):
    """What one contender did in one round."""

    rate: float
    """Units a second."""
    client_cores: float
    server_cores: float
    """Cores in use by the server process, NaN when there is none."""


def race(
    title: str, contenders: Sequence[Contender], *, unit: str = "records/s", rounds: int = 5, warm: int = 1
) -> None:
    """Run all in turns, `warm` uncounted rounds first, and print the table; the last contender is the measure."""
    for _ in range(warm):
        for contender in contenders:
            contender.run()
    # Every library is loaded in this process: searching all of them for garbage is not a part of anybody's work.
    gc.collect()
    gc.freeze()
    heats: list[list[Heat]] = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, results in zip(contenders, heats, strict=True):
            results.append(heat(contender))
    show(table(title, contenders, heats, unit))


def heat(contender: Contender) -> Heat:
    """One contender's turn."""
    server, own, clock = cpu_seconds(contender.server), time.process_time(), time.perf_counter()
    done = contender.run()
    span = time.perf_counter() - clock
    return Heat(done / span, (time.process_time() - own) / span, (cpu_seconds(contender.server) - server) / span)


def cpu_seconds(process: int | None) -> float:
    """Processor time that a process has used so far, its threads included; NaN without a process."""
    if process is None:
        return float("nan")
    # The command's name, in brackets, may hold spaces; what follows it does not. utime and stime are fields 14 and 15.
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(process: int) -> int:
    """Memory of a process that is in use and its own, the pages of mapped files left out."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def table(title: str, contenders: Sequence[Contender], heats: Sequence[Sequence[Heat]], unit: str) -> Table:
    """Medians of each contender, and the median of its ratios to the last one."""
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
    """Cores as a percentage of one, empty when nobody counted."""
    return "" if cores != cores else f"{cores:.0%}"


def show(printed: Table) -> None:
    """Print a table, as wide as it needs when nobody watches."""
    console = Console()
    Console(width=console.width if console.is_terminal else 120).print(printed)
