"""Boxes in a terminal."""

from __future__ import annotations

from rich.console import Console

from ottla.cli.live.panel import panel

LINES = ["group  billing-of-all-of-europe", "state  stable"]


def visible_lines(*, folds: bool) -> list[str]:
    """The lines within its borders."""
    console = Console(width=24, no_color=True)
    with console.capture() as captured:
        console.print(panel("coordinator", LINES, folds=folds))
    return [line.strip("│ ") for line in captured.get().splitlines()[1:-1]]


def test_a_long_line_is_cut_or_wrapped_on_request() -> None:
    assert visible_lines(folds=False) == ["group  billing-of-a…", "state  stable"]
    assert "".join(visible_lines(folds=True)).replace(" ", "") == "".join(LINES).replace(" ", "")
