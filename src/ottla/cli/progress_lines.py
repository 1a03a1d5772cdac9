"""Progress of a long command on standard error: messages, and a line that changes."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from ottla.escaping import escape_controls_in_lines

TERMINAL_SECONDS, FILE_SECONDS = 0.25, 10.0
"""The interval of progress lines: in a terminal they replace each other, elsewhere a line is appended."""


class HasText(Protocol):
    """The progress at a moment."""

    @property
    def text(self) -> str: ...


class ProgressLines:
    """A context manager that prints lines and a progress line; the latter is erased at the end."""

    def __init__(self) -> None:
        self._in_place = sys.stderr.isatty()
        self._pause = TERMINAL_SECONDS if self._in_place else FILE_SECONDS
        self._shown_at = time.monotonic()
        self._drawn = False

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def print_line(self, text: str) -> None:
        self._clear()
        print(escape_controls_in_lines(text), file=sys.stderr, flush=True)

    def show(self, report: HasText) -> None:
        """Print the progress if its interval has passed."""
        now = time.monotonic()
        if now - self._shown_at < self._pause:
            return
        self._shown_at = now
        if not self._in_place:
            self.print_line(report.text)
            return
        sys.stderr.write(f"\r\x1b[K{report.text}")
        sys.stderr.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            self._drawn = False
