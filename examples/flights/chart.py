"""Draw the year as a picture: the delays of each day above, and the cancelled flights below."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.flights.worst_days import AIRPORTS

INK, PAPER = "#293241", "#fbfaf7"
COLOURS = {"EWR": "#3d5a80", "JFK": "#ee6c4d", "LGA": "#98c1d9"}
FIRST = pd.Timestamp("2013-01-01")


def draw(delays: pd.DataFrame, days: pd.DataFrame, path: Path) -> None:
    """Write the chart as PNG; `days` is one row per day, `delays` one per day, airport and carrier."""
    figure = Figure(figsize=(12, 6.8), facecolor=PAPER, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    draw_delays(above, days)
    draw_cancelled(below, delays, days)
    for axes in (above, below):
        tidy(axes)
    above.spines["bottom"].set_visible(False)
    months = pd.date_range(FIRST, periods=12, freq="MS")
    below.set_xticks(months, months.strftime("%b"), ha="left")
    below.set_xlim(FIRST - pd.Timedelta(days=1), FIRST + pd.Timedelta(days=365))
    title = f"{days['flights'].sum():,} flights from New York in 2013: how late they left, day by day"
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_delays(axes: Axes, days: pd.DataFrame) -> None:
    """Draw a bar per day, darker for larger delays."""
    height = days["mean_delay"]
    shades = mpl.colormaps["YlOrRd"](0.15 + 0.8 * (height / height.max()).clip(0, 1))
    axes.bar(pd.to_datetime(days.index), height, width=1.0, color=shades)
    axes.set_ylim(top=height.max() * 1.12)
    axes.set_ylabel("mean delay, minutes")
    label_worst(axes, height)


def label_worst(axes: Axes, height: pd.Series[float]) -> None:
    """Write the date over the highest bars. Of neighbours, only one is labelled."""
    labelled: list[pd.Timestamp] = []
    for day, minutes in height.nlargest(14).items():
        when = pd.Timestamp(str(day))
        if all(abs(when - other) > pd.Timedelta(days=14) for other in labelled):
            labelled.append(when)
            above = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center"}
            axes.annotate(f"{when.day} {when:%b}", (when, minutes), **above, fontsize=9.5, color=INK)  # type: ignore[arg-type]


def draw_cancelled(axes: Axes, delays: pd.DataFrame, days: pd.DataFrame) -> None:
    """Draw the cancelled flights, with the airports stacked."""
    counts = delays.pivot_table(index="day", columns="origin", values="cancelled", aggfunc="sum", fill_value=0)
    floor = pd.Series(0, index=days.index)
    for origin, colour in COLOURS.items():
        height = counts[origin].reindex(days.index, fill_value=0)
        axes.bar(pd.to_datetime(days.index), height, bottom=floor, width=1.0, color=colour, label=AIRPORTS[origin])
        floor = floor + height
    axes.set_ylabel("cancelled flights")
    axes.legend(frameon=False, ncols=3, loc="upper right", labelcolor=INK)


def tidy(axes: Axes) -> None:
    """Remove unnecessary lines."""
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=INK)
    axes.yaxis.label.set_color(INK)
