"""Our broker and Apache Kafka do the same work in turns; a line for each figure, with the ratio and what we aim at."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from benchmarks.brokers import Running
from benchmarks.race import cpu_seconds, show

Figures = Mapping[str, float]
"""Name, with its unit, → value."""
Work = Callable[[Running], Figures]


class Line(NamedTuple):
    """One figure of both sides."""

    name: str
    values: Sequence[float]
    """A median for each server."""
    ratio: float
    """Median over the rounds of ours to theirs; NaN where we ran alone."""


def duel(servers: Sequence[Running], work: Work, *, rounds: int = 3) -> list[Line]:
    """Let all do `work` in turns."""
    results: list[list[Figures]] = [[] for _ in servers]
    for _ in range(rounds):
        for server, found in zip(servers, results, strict=True):
            found.append(work(server))
    return [line(name, results) for name in results[0][0]]


def line(name: str, results: Sequence[Sequence[Figures]]) -> Line:
    """The medians of one figure."""
    columns = [[figures[name] for figures in found] for found in results]
    ratio = float("nan")
    if len(columns) > 1:
        ratio = statistics.median(
            ours / theirs if theirs else float("nan") for ours, theirs in zip(*columns[:2], strict=True)
        )
    return Line(name, [statistics.median(column) for column in columns], ratio)


def metered(server: Running, megabytes: float, seconds: Callable[[], float]) -> Figures:
    """Throughput and the server's processor time of some work that tells how long it took."""
    before = cpu_seconds(server.process)
    span = seconds()
    used = cpu_seconds(server.process) - before
    return {"MB/s": megabytes / span, "server CPU s/GB": used / megabytes * 1000}


def report(title: str, servers: Sequence[Running], lines: Sequence[tuple[Line, str]]) -> None:
    """Print figures, each with the aim it is held against."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("")
    for server in servers:
        shown.add_column(server.name, justify="right")
    shown.add_column("ratio", justify="right")
    shown.add_column("aim")
    for each, aim in lines:
        ratio = "" if each.ratio != each.ratio else f"{each.ratio:.2f}"
        shown.add_row(each.name, *(f"{value:,.4g}" for value in each.values), ratio, aim)
    show(shown)
