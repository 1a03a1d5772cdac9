"""Our broker and its rivals do the same work in turns.

Each figure is a row with our ratio to each rival and our target.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from benchmarks.brokers import Running
from benchmarks.race import cpu_seconds, show

Figures = Mapping[str, float]
"""Figures by name, which includes the unit."""
Work = Callable[[Running], Figures]


class Line(NamedTuple):
    """One figure of all servers."""

    name: str
    values: Sequence[float]
    """The median of each server."""
    ratios: Sequence[float]
    """The median over the rounds of our ratio to each rival."""


def duel(servers: Sequence[Running], work: Work, *, rounds: int = 3) -> list[Line]:
    """Run `work` on all servers in turns."""
    results: list[list[Figures]] = [[] for _ in servers]
    for _ in range(rounds):
        for server, found in zip(servers, results, strict=True):
            found.append(work(server))
    return [line(name, results) for name in results[0][0]]


def line(name: str, results: Sequence[Sequence[Figures]]) -> Line:
    """Return the medians of one figure."""
    ours, *rivals = [[figures[name] for figures in found] for found in results]
    ratios = [ratio(ours, theirs) for theirs in rivals]
    return Line(name, [statistics.median(column) for column in (ours, *rivals)], ratios)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the rounds' ratios; NaN if a rival's value is 0."""
    return statistics.median(our / their if their else float("nan") for our, their in zip(ours, theirs, strict=True))


def metered(server: Running, megabytes: float, seconds: Callable[[], float]) -> Figures:
    """Return the throughput and the server's processor time of work that returns its duration."""
    before = cpu_seconds(server.process)
    span = seconds()
    used = cpu_seconds(server.process) - before
    return {"MB/s": megabytes / span, "server CPU s/GB": used / megabytes * 1000}


def report(title: str, servers: Sequence[Running], lines: Sequence[tuple[Line, str]]) -> None:
    """Print the figures, each with its target."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("")
    for server in servers:
        shown.add_column(server.name, justify="right")
    for rival in servers[1:]:
        shown.add_column(f"/ {rival.name}", justify="right")
    shown.add_column("aim")
    for each, aim in lines:
        ratios = ("" if found != found else f"{found:.2f}" for found in each.ratios)
        shown.add_row(each.name, *(f"{value:,.4g}" for value in each.values), *ratios, aim)
    show(shown)
