"""The rows of a view, fitted to the width and height of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.live.keys import HELP
from ottla.cli.live.panel import panel

if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.console import Console, RenderableType
    from rich.segment import Segment

    from ottla.cli.live.window import LiveWindow

    Rows: TypeAlias = list[list[Segment]]

FEWEST = 3
"""The minimum number of lines of the time line."""
BORDERS = 2
STATUS = 1
KEYS = "q end  ↑↓ scroll  Tab {other}  m {amount}  p pause  s step  ? help"
PAUSED = "PAUSED, {waiting} waiting  p resume  s step  q end  ? help"


def rows_of(console: Console, window: LiveWindow, picture: list[list[Segment]], width: int, height: int) -> Rows:
    """Return the rows: the visible part of the picture, the time line, the keys."""
    room = height - STATUS
    if window.helps:
        picture = render_lines(console, help_panel(), width)
    below = min(room, max(FEWEST + BORDERS, room - len(picture)))
    window.fit(len(picture), room - below, max(1, below - BORDERS))
    above = picture[window.top : window.top + room - below]
    rows = [*above, *render_lines(console, time_line(window), width)[:below]]
    rows += [blank_line(width) for _ in range(room - len(rows))]
    return [*rows[:room], *render_lines(console, status_line(window), width)[:STATUS]]


def render_lines(console: Console, what: RenderableType, width: int) -> Rows:
    """Render as lines of the given width."""
    return console.render_lines(what, console.options.update(width=width, height=None), pad=True)


def blank_line(width: int) -> list[Segment]:
    from rich.segment import Segment

    return [Segment(" " * width)]


def time_line(window: LiveWindow) -> RenderableType:
    height = window.time_line_height
    lines = [line[window.left :] for line in window.time_line.visible_lines(height)]
    lines += [""] * (height - len(lines))
    style = "dim" if window.on_picture else "cyan"
    return panel("time line" if not window.left else f"time line from column {window.left + 1}", lines, style=style)


def status_line(window: LiveWindow) -> RenderableType:
    """Return the status line: the keys, and the visible part of the scrolled area."""
    from rich.text import Text

    other, amount = "time line" if window.on_picture else "picture", "less" if window.whole else "more"
    keys = (
        PAUSED.format(waiting=window.time_line.waiting) if window.is_paused else KEYS.format(other=other, amount=amount)
    )
    first, last, of_all = scroll_place(window)
    seen = f"{first}–{last}/{of_all}" if of_all else ""
    text = Text(no_wrap=True, overflow="ellipsis", style="reverse")
    return text.append(f" {keys}").append(f"  {seen}")


def scroll_place(window: LiveWindow) -> tuple[int, int, int]:
    """Return the numbers of the first and last visible line of the scrolled area, and its number of lines."""
    if not window.on_picture:
        return window.time_line.place(window.time_line_height)
    last = min(window.top + window.picture_height, window.picture_lines)
    return window.top + 1, last, window.picture_lines


def help_panel() -> RenderableType:
    return panel("keys", [f"{key:<26}{what}" for key, what in HELP], style="cyan")
