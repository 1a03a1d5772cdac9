"""A window's rows: as many as a terminal has, each as wide as it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.live.keys import HELP
from ottla.cli.live.panel import panel

if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.console import Console, RenderableType
    from rich.segment import Segment

    from ottla.cli.live.window import Window

    Rows: TypeAlias = list[list[Segment]]

FEWEST = 3
"""Lines of the time line at least."""
BORDERS = 2
STATUS = 1
KEYS = "q end  ↑↓ scroll  Tab {other}  m {amount}  p pause  s step  ? help"
PAUSED = "PAUSED, {waiting} waiting  p go on  s step  q end  ? help"


def rows_of(console: Console, window: Window, picture: list[list[Segment]], width: int, height: int) -> Rows:
    """The picture as far as it has room, the time line, the keys."""
    room = height - STATUS
    if window.helps:
        picture = drawn(console, help_panel(), width)
    below = min(room, max(FEWEST + BORDERS, room - len(picture)))
    window.fit(len(picture), room - below, max(1, below - BORDERS))
    above = picture[window.top : window.top + room - below]
    rows = [*above, *drawn(console, time_line(window), width)[:below]]
    rows += [blank(width) for _ in range(room - len(rows))]
    return [*rows[:room], *drawn(console, status(window), width)[:STATUS]]


def drawn(console: Console, what: RenderableType, width: int) -> Rows:
    """As lines of a width, as many as it takes."""
    return console.render_lines(what, console.options.update(width=width, height=None), pad=True)


def blank(width: int) -> list[Segment]:
    from rich.segment import Segment

    return [Segment(" " * width)]


def time_line(window: Window) -> RenderableType:
    height = window.time_line_height
    lines = [line[window.left :] for line in window.time_line.shown(height)]
    lines += [""] * (height - len(lines))
    style = "dim" if window.on_picture else "cyan"
    return panel("time line" if not window.left else f"time line from column {window.left + 1}", lines, style=style)


def status(window: Window) -> RenderableType:
    """One line: the keys on the left, on the right what is seen of the part that is scrolled."""
    from rich.text import Text

    other, amount = "time line" if window.on_picture else "picture", "less" if window.whole else "more"
    keys = (
        PAUSED.format(waiting=window.time_line.waiting) if window.is_paused else KEYS.format(other=other, amount=amount)
    )
    first, last, of_all = place(window)
    seen = f"{first}–{last}/{of_all}" if of_all else ""
    text = Text(no_wrap=True, overflow="ellipsis", style="reverse")
    return text.append(f" {keys}").append(f"  {seen}")


def place(window: Window) -> tuple[int, int, int]:
    """The first and the last line that are seen of what is scrolled, and how many there are."""
    if not window.on_picture:
        return window.time_line.place(window.time_line_height)
    last = min(window.top + window.picture_height, window.picture_lines)
    return window.top + 1, last, window.picture_lines


def help_panel() -> RenderableType:
    return panel("keys", [f"{key:<26}{what}" for key, what in HELP], style="cyan")
