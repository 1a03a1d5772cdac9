"""Draw the story as a picture: a lane for each partition, coloured by its owner; white means no owner."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from examples.rebalance.happening import STORY, spans
from examples.rebalance.story import PARTITIONS, Told
from ottla.coordination.groups.classic.notes import RebalanceStarted

INK, PAPER = "#293241", "#fbfaf7"
COLOURS = {"anna": "#3d5a80", "bert": "#ee6c4d", "cleo": "#98c1d9"}
KINDS = {"range": "eager (range)", "cooperative-sticky": "cooperative (cooperative-sticky)"}


def draw(stories: list[Told], path: Path) -> None:
    """Write the picture as PNG or SVG, depending on the suffix."""
    figure = Figure(figsize=(12, 3.6 * len(stories)), facecolor=PAPER, layout="constrained")
    for axes, told in zip(figure.subplots(len(stories), 1, squeeze=False)[:, 0], stories, strict=True):
        draw_one(axes, told)
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in COLOURS.items()],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    figure.suptitle("Who has which partition", x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_one(axes: Axes, told: Told) -> None:
    """Draw lanes, steps as numbered ticks above, and rebalances as dashed lines."""
    start = told.happenings[0].at_ms
    for partition, owner, begin, end in spans(told.happenings):
        axes.barh(partition, end - begin, left=begin, height=0.8, color=COLOURS[owner])
    steps = []
    for at_ms, who, event in told.happenings:
        at = (at_ms - start) / 1000
        if isinstance(event, RebalanceStarted):
            axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
        if who == STORY:
            steps.append((at, str(event).partition(",")[0].partition(":")[0]))
    for number, (at, text) in enumerate(steps):
        height = PARTITIONS - 0.35 + 0.55 * (number % 3)
        axes.plot([at, at], [-0.5, height], color=INK, linewidth=0.8)
        axes.annotate(text, (at, height), xytext=(3, -3), textcoords="offset points", fontsize=8, color=INK)
    axes.set_ylim(-0.6, PARTITIONS + 1.5)
    axes.set_yticks(range(PARTITIONS), [f"partition {number}" for number in range(PARTITIONS)])
    axes.set_xlabel("seconds; a dashed line is the beginning of a rebalance")
    axes.set_title(KINDS.get(told.assignor, told.assignor), loc="left", color=INK)
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right"]].set_visible(False)
