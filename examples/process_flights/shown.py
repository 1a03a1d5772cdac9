"""The punctuality of the carriers, as a table and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table

from examples.flights.chart import INK, PAPER, tidy
from examples.process_flights.classify import CANCELLED, CLASSES

COLOURS = {"early": "#3d5a80", "on time": "#98c1d9", "late": "#f4b393", "very late": "#ee6c4d", CANCELLED: "#8d99ae"}
ORDER = (*CLASSES, CANCELLED)
Counts = Counter[tuple[str, str]]


def carriers(counts: Counts) -> list[str]:
    """Return the carriers, those with the most flights first."""
    totals: Counter[str] = Counter()
    for (carrier, _), count in counts.items():
        totals[carrier] += count
    return [carrier for carrier, _ in totals.most_common()]


def table(counts: Counts, names: Mapping[str, str]) -> Table:
    """Return a table with a row for each carrier, in percent of its flights."""
    shown = Table(title="How punctually flights left New York in 2013", title_justify="left", box=None)
    shown.add_column("", no_wrap=True)
    for heading in ("flights", *ORDER):
        shown.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    for carrier in carriers(counts):
        total = sum(counts[carrier, name] for name in ORDER)
        shares = (f"{counts[carrier, name] / total:.0%}" for name in ORDER)
        shown.add_row(names.get(carrier, carrier).removesuffix(" Inc."), f"{total:,}", *shares)
    return shown


def draw(counts: Counts, names: Mapping[str, str], path: Path) -> None:
    """Draw a bar for each carrier, of all its flights."""
    figure = Figure(figsize=(12, 6), facecolor=PAPER, layout="constrained")
    axes = figure.subplots()
    order = carriers(counts)[::-1]
    totals = [sum(counts[carrier, name] for name in ORDER) for carrier in order]
    left = [0.0] * len(order)
    for name in ORDER:
        widths = [100 * counts[carrier, name] / total for carrier, total in zip(order, totals, strict=True)]
        axes.barh(
            [names.get(carrier, carrier) for carrier in order], widths, left=left, color=COLOURS[name], label=name
        )
        left = [at + width for at, width in zip(left, widths, strict=True)]
    tidy(axes)
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent of the carrier's flights")
    figure.legend(frameon=False, ncols=len(ORDER), loc="outside lower center", labelcolor=INK)
    figure.suptitle("How punctually flights left New York in 2013", x=0.01, ha="left", fontsize=15, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
