"""A box with a title."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType


def panel(title: str, lines: Iterable[str], *, style: str = "dim", folds: bool = False) -> RenderableType:
    """Return a box of full width; long lines are cut, or wrapped if `folds`."""
    from rich.panel import Panel
    from rich.text import Text

    text = Text(
        "\n".join(map(escape_controls, lines)) or " ", no_wrap=not folds, overflow="fold" if folds else "ellipsis"
    )
    return Panel(text, title=title, title_align="left", border_style=style)
