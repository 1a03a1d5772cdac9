"""Standard output: escaped text and JSON; the wait for records; detection of a closed reader."""

from __future__ import annotations

import select
import sys
import time
from typing import Any

import click

from ottla.escaping import escape_controls_in_lines, escape_json

UPDATE_SECONDS = 0.2
"""The interval at which a wait for records checks that the output's reader is still open."""
NOTICE_SECONDS = 2.0
"""The time without a record after which a terminal shows a notice."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines. Control characters are escaped; names within a line must be escaped by `escape_controls` before."""
    click.echo(escape_controls_in_lines(text), err=err, nl=nl)


def prints_table(names_only: bool) -> bool:
    """Return true if a list is printed as a table. Output into a pipe or a file is one name per line, as of `ls`."""
    return not names_only and sys.stdout.isatty()


def to_json(value: Any, **how: Any) -> str:
    """Return a value as readable JSON without control characters."""
    import json  # most commands print text

    return escape_json(json.dumps(value, ensure_ascii=False, **how))


def wait_seconds(timeout: float | None, last_record_at: float) -> float:
    """Return the seconds to wait for records now; below 0 if `timeout` has passed since the last."""
    return UPDATE_SECONDS if timeout is None else min(UPDATE_SECONDS, last_record_at + timeout - time.monotonic())


def is_closed_by_reader(fd: int) -> bool:
    """Return true if `fd` is a pipe with a closed reader; nothing is written for this check."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(flags & (select.POLLERR | select.POLLNVAL) for _, flags in poll.poll(0))


class WaitingNotice:
    """A notice on standard error, printed once, in a terminal, if no record was printed for a while."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._due = time.monotonic() + NOTICE_SECONDS if sys.stdout.isatty() and sys.stderr.isatty() else float("inf")

    def print_if_due(self, printed: int) -> None:
        """Print the notice if it is due and nothing was printed."""
        if printed:
            self._due = float("inf")
        elif time.monotonic() >= self._due:
            self._due = float("inf")
            print(f"ottla: {self._text}", file=sys.stderr)
