"""A box, as a terminal shows it."""

from __future__ import annotations

from rich.console import Console

from ottla.cli.live.panel import panel

LINES = ["group  billing-of-all-of-europe", "state  stable"]


def shown(*, folds: bool) -> list[str]:
    """The lines within its borders."""
    console = Console(width=24, no_color=True)
    with console.capture() as captured:
        console.print(panel("coordinator", LINES, folds=folds))
    return [line.strip("│ ") for line in captured.get().splitlines()[1:-1]]


def test_a_line_that_is_too_long_is_cut_and_goes_on_below_where_all_is_wanted() -> None:
    assert shown(folds=False) == ["group  billing-of-a…", "state  stable"]
    assert "".join(shown(folds=True)).replace(" ", "") == "".join(LINES).replace(" ", "")
