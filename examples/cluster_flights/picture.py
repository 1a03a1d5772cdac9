"""Draw the story as a picture: acknowledged flights over time, and the events of the cluster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

from examples.cluster_flights.story import Story
from examples.flights.chart import INK, PAPER, tidy

WIDTH = 0.1
"""The width of a bar in seconds."""


def draw(story: Story, path: Path) -> None:
    """Write the picture as PNG or SVG."""
    figure = Figure(figsize=(12, 4.6), facecolor=PAPER, layout="constrained")
    axes = figure.subplots()
    bars = Counter(int(each / WIDTH) for each in story.acknowledged)
    axes.bar([(each + 0.5) * WIDTH for each in bars], list(bars.values()), width=WIDTH, color="#3d5a80")
    top = max(bars.values())
    for number, (moment, what) in enumerate(story.events):
        axes.axvline(moment, color="#ee6c4d" if what.startswith("kill") else "#6a994e", linewidth=1.6)
        place = {"xytext": (5, -4 - 14 * (number % 2)), "textcoords": "offset points", "va": "top"}
        axes.annotate(what, (moment, top * 1.3), **place, fontsize=9.5, color=INK)  # type: ignore[arg-type]
    axes.set_ylim(top=top * 1.32)
    axes.set_xlabel("seconds")
    axes.set_ylabel("acknowledged flights in 0.1 s")
    tidy(axes)
    title = f"{len(story.acknowledged):,} flights into three nodes, of which two are killed on the way"
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
