"""The progress of running pipelines: one row each in a terminal, otherwise a JSON line per event."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.cli.output import to_json
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.table import Table

    from ottla.pipelines.manager.runner import PipelineEvent

HEADINGS = ("pipeline", "state", "batch", "rows in", "rows out", "lag", "seconds", "dead letters", "")
NUMBERS = ("batch", "rows_in", "rows_out", "lag", "batch_seconds", "dead_letters")
SUMMED = ("rows_in", "rows_out")


@contextmanager
def view_of(names: Sequence[str], *, in_json: bool = False) -> Iterator[Callable[[PipelineEvent], None]]:
    """Yield the function that receives all events."""
    from rich.console import Console

    console = Console()
    if in_json or not console.is_terminal:
        yield print_line
        return
    from rich.live import Live

    lines = Lines(names)
    with Live(lines.table(), console=console, auto_refresh=False) as live:

        def on_event(event: PipelineEvent) -> None:
            lines.update(event)
            live.update(lines.table(), refresh=True)

        yield on_event


def print_line(event: PipelineEvent) -> None:
    line = {"at": round(time.time(), 3), "pipeline": event.pipeline, "event": event.event, **event.facts}
    print(to_json(line), file=sys.stdout, flush=True)


class Lines:
    """The table of pipelines with their last state and sums."""

    def __init__(self, names: Sequence[str]) -> None:
        self._states: dict[str, str] = dict.fromkeys(names, "waiting")
        self._facts: dict[str, dict[str, Any]] = {name: {} for name in names}

    def update(self, event: PipelineEvent) -> None:
        facts: Mapping[str, Any] = event.facts
        known = self._facts[event.pipeline]
        if event.event == "progress":
            summed = {name: known.get(name, 0) + facts[name] for name in SUMMED}
            known.update(facts)
            known.update(summed)
        else:
            self._states[event.pipeline] = event.event
            known["reason"] = facts.get("reason", "")

    def table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for number, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="right" if 1 < number < 8 else "left", overflow="fold")
        for name, state in self._states.items():
            facts = self._facts[name]
            reason = escape_controls(facts.get("reason", ""))
            table.add_row(name, state, *(cell(facts.get(each)) for each in NUMBERS), reason)
        return table


def cell(value: Any) -> str:
    """Return a number with thousands separators, or a dash."""
    return "-" if value is None else f"{value:,}"
