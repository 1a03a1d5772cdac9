"""A view that is drawn again and again: in a terminal in place, elsewhere as lines of what is new."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ottla.cli.output import nobody_reads

if TYPE_CHECKING:
    from rich.console import RenderableType

LINES = 12
"""How much of the time line is shown."""
FEWEST = 3
"""The same in a low terminal."""
ABOVE = 24
"""Lines of a terminal that are for the picture above it."""


class LiveView:
    """The time line, and a picture above it where there is a terminal; with `in_json` a line of JSON for each event."""

    def __init__(self, draw: Callable[[Iterable[str]], RenderableType], *, in_json: bool = False) -> None:
        from rich.console import Console

        self._console = Console()
        self._draw = draw
        self._lines: deque[str] = deque(maxlen=LINES)
        self._live: Any = None
        self._in_json = in_json

    def open(self) -> AbstractContextManager[Any]:
        """Take the terminal, where there is one, until the end of the `with` statement."""
        if self._in_json or not self._console.is_terminal:
            return nullcontext()
        from rich.live import Live

        self._live = Live(console=self._console, auto_refresh=False, screen=False)
        opened: AbstractContextManager[Any] = self._live
        return opened

    def tell(self, text: str, at_ms: float | None = None, **facts: Any) -> None:
        """One more line of the time line; the facts are for programs."""
        now_ms = int(time.time() * 1000 if at_ms is None else at_ms)
        if self._in_json:
            line = json.dumps({"at_ms": now_ms, **facts, "text": text}, ensure_ascii=False)
        else:
            line = f"{clock_time(now_ms / 1000)}  {text}"
        self._lines.append(line)
        if self._live is None:
            print(line, flush=True)
            self.check_reader()

    def refresh(self) -> None:
        if self._live is not None:
            lines = list(self._lines)[-max(FEWEST, self._console.height - ABOVE) :]
            self._live.update(self._draw(lines), refresh=True)
        else:
            self.check_reader()

    def check_reader(self) -> None:
        """Whoever closed the pipe has seen enough."""
        if nobody_reads(sys.stdout.fileno()):
            raise BrokenPipeError


def clock_time(seconds: float) -> str:
    """Local time of day to the millisecond."""
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{int(seconds * 1000) % 1000:03d}"


def panel(title: str, lines: Iterable[str]) -> RenderableType:
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join(lines) or " ", no_wrap=True, overflow="ellipsis")
    return Panel(text, title=title, title_align="left", border_style="dim")
