"""What goes on, for a person at a terminal or for a program behind a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from ottla.cli.output import nobody_reads, to_json
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.cli.live.screen import Screen


class LiveView:
    """A picture and the time line in a terminal; elsewhere a line for each event, with `in_json` of JSON.

    `draw` makes the picture: with a few lines in each box, or with True with all.
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
        """Take the terminal, where there is one, until the end of the `with` statement."""
        if self._in_json or not self._console.is_terminal or self._console.is_dumb_terminal or in_background():
            return nullcontext()
        from ottla.cli.live.screen import Screen

        self._screen = Screen(self._console, stdin_is_data=self._stdin_is_data)
        return self._screen

    @property
    def ended(self) -> bool:
        """Whether who looks has seen enough."""
        return self._screen is not None and self._screen.ended.is_set()

    def wait(self, seconds: float) -> None:
        """Until the time is up, or who looks has seen enough."""
        if self._screen is None:
            time.sleep(seconds)
        else:
            self._screen.ended.wait(seconds)

    def tell(self, text: str, at_ms: float | None = None, **facts: Any) -> None:
        """One more line of the time line; the facts are for programs."""
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
        """Whoever closed the pipe has seen enough."""
        if nobody_reads(sys.stdout.fileno()):
            raise BrokenPipeError


def clock_time(seconds: float) -> str:
    """Local time of day to the millisecond."""
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{int(seconds * 1000) % 1000:03d}"


def in_background() -> bool:
    """Whether the terminal is at somebody else's disposal: to take it would stop this process."""
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdout.fileno()) != os.getpgrp()
    return False
