"""Live output for a terminal or for a program that reads a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from ottla.cli.output import is_closed_by_reader, to_json
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.cli.live.screen import Screen


class LiveView:
    """A picture and a time line in a terminal; otherwise a line per event, as JSON with `in_json`.

    `draw(whole)` returns the picture, with a few lines per box, or with all of them.
    """

    def __init__(
        self, draw: Callable[[bool], RenderableType], *, in_json: bool = False, stdin_is_data: bool = False
    ) -> None:
        from rich.console import Console

        self._console = Console()
        self._draw = draw
        self._screen: Screen | None = None
        self._in_json = in_json
        self._stdin_is_data = stdin_is_data

    def open(self) -> AbstractContextManager[Any]:
        """Enter the full-screen view if there is a terminal, until the end of the `with` statement."""
        if self._in_json or not self._console.is_terminal or self._console.is_dumb_terminal or is_in_background():
            return nullcontext()
        from ottla.cli.live.screen import Screen

        self._screen = Screen(self._console, stdin_is_data=self._stdin_is_data)
        return self._screen

    @property
    def has_ended(self) -> bool:
        """True if the user ended the view."""
        return self._screen is not None and self._screen.ended.is_set()

    def wait(self, seconds: float) -> None:
        """Wait until the time is over or the user ends the view."""
        if self._screen is None:
            time.sleep(seconds)
        else:
            self._screen.ended.wait(seconds)

    def add_event(self, text: str, at_ms: float | None = None, **facts: Any) -> None:
        """Add a line to the time line; `facts` become fields of the JSON form."""
        now_ms = int(time.time() * 1000 if at_ms is None else at_ms)
        if self._in_json:
            line = to_json({"at_ms": now_ms, **facts, "text": text})
        else:
            line = f"{clock_time(now_ms / 1000)}  {escape_controls(text)}"
        if self._screen is None:
            print(line, flush=True)
            self.check_reader()
        else:
            self._screen.add(line)

    def refresh(self) -> None:
        if self._screen is not None:
            self._screen.show(self._draw)
        else:
            self.check_reader()

    def check_reader(self) -> None:
        """Raise BrokenPipeError if the reader of standard output is closed."""
        if is_closed_by_reader(sys.stdout.fileno()):
            raise BrokenPipeError


def clock_time(seconds: float) -> str:
    """Return the local time of day with milliseconds."""
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{int(seconds * 1000) % 1000:03d}"


def is_in_background() -> bool:
    """Return true if this is a background job, which the kernel would stop when it uses the terminal."""
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdout.fileno()) != os.getpgrp()
    return False
