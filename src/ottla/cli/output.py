"""Standard output: text and JSON that a terminal may show; and while records are printed how long to wait for more, and if it is still read."""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

import click

from ottla.escaping import escape_controls_in_lines, escape_json

TURN_SECONDS = 0.2
"""How long to wait for records before looking whether anybody still reads our output."""
NOTICE_SECONDS = 2.0
"""After so many seconds without a record a person at a terminal reads what is waited for."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines. What a terminal would obey is escaped; names within a line have to be escaped by `escape_controls` before."""
    click.echo(escape_controls_in_lines(text), err=err, nl=nl)


def to_json(value: Any, **how: Any) -> str:
    """Return a value as JSON that is readable and that a terminal may show."""
    return escape_json(json.dumps(value, ensure_ascii=False, **how))


def patience_of(timeout: float | None, last_heard: float) -> float:
    """Seconds to wait for records now; below 0 when `timeout` has passed since the last."""
    return TURN_SECONDS if timeout is None else min(TURN_SECONDS, last_heard + timeout - time.monotonic())


def nobody_reads(fd: int) -> bool:
    """Whether `fd` is a pipe that was closed at the other end; known without writing to it."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(flags & (select.POLLERR | select.POLLNVAL) for _, flags in poll.poll(0))


class WaitingNotice:
    """A line on standard error that says what is waited for: once, at a terminal, where nothing has been printed for a while."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._due = time.monotonic() + NOTICE_SECONDS if sys.stdout.isatty() and sys.stderr.isatty() else float("inf")

    def look(self, printed: int) -> None:
        """Print the line if it is due; never once something was printed."""
        if printed:
            self._due = float("inf")
        elif time.monotonic() >= self._due:
            self._due = float("inf")
            print(f"ottla: {self._text}", file=sys.stderr)
