"""A box with a title."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType


def panel(title: str, lines: Iterable[str], *, style: str = "dim") -> RenderableType:
    """The lines in a box that is as wide as there is room; what is too long is cut."""
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join(lines) or " ", no_wrap=True, overflow="ellipsis")
    return Panel(text, title=title, title_align="left", border_style=style)
