"""The states of pipelines, updated: a table in a terminal, otherwise a JSON line per change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.output import echo, to_json
from ottla.cli.tables import cell_text, key_of

if TYPE_CHECKING:
    from rich.table import Table

Rows = Sequence[Sequence[Any]]
POLL_SECONDS = 0.5


def watch(
    columns: Sequence[str],
    look: Callable[[], Rows],
    pause: Callable[[float], None] = time.sleep,
    *,
    in_json: bool = False,
) -> None:
    """Show updates until Ctrl-C, which `pause` raises; `look` returns one row per pipeline."""
    from rich.console import Console

    console = Console()
    try:
        if console.is_terminal and not in_json:
            show_live(console, columns, look, pause)
        else:
            print_changes(columns, look, pause)
    except KeyboardInterrupt:
        return


def print_changes(columns: Sequence[str], look: Callable[[], Rows], pause: Callable[[float], None]) -> None:
    """Print an object for each pipeline, and again after each change."""
    keys = [key_of(column) for column in columns]
    before: dict[int, Sequence[Any]] = {}
    while True:
        for number, row in enumerate(look()):
            if before.get(number) != row:
                echo(to_json(dict(zip(keys, row, strict=True))))
                before[number] = row
        pause(POLL_SECONDS)


def show_live(console: Any, columns: Sequence[str], look: Callable[[], Rows], pause: Callable[[float], None]) -> None:
    from rich.live import Live

    with Live(table_of(columns, look()), console=console, auto_refresh=False) as live:
        while True:
            pause(POLL_SECONDS)
            live.update(table_of(columns, look()), refresh=True)


def table_of(columns: Sequence[str], rows: Rows) -> Table:
    """Return the table that the command prints without --watch."""
    from rich.table import Table

    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(cell_text, row))
    return table
