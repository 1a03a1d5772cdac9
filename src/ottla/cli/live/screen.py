"""The whole of a terminal, taken at first and given back at the end with what it was before, below it the last that was seen."""

from __future__ import annotations

import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from ottla.cli.live.frame import drawn, rows_of
from ottla.cli.live.keyboard import keyboard_of
from ottla.cli.live.suspension import Suspension
from ottla.cli.live.time_line import TimeLine
from ottla.cli.live.window import Window

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment

SIGNALLED = 128
"""Added to a signal's number it is the status of who ended by it, as shells tell it."""


class Screen:
    """`with Screen(…) as screen: screen.show(picture)`; keys are heeded by a thread of its own."""

    def __init__(self, console: Console, *, stdin_is_data: bool = False) -> None:
        self._console = console
        self.window = Window(TimeLine())
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._picture: list[list[Segment]] = []
        self._rows: list[list[Segment]] = []
        self._is_typed_at = stdin_is_data and sys.stdin.isatty()
        self._keyboard = keyboard_of(self.press, stdin_is_data=stdin_is_data)
        self._suspension = Suspension(self._lend)
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Screen:
        self._take()
        if self._keyboard is not None:
            self._keyboard.open()
        self._suspension.open()
        handlers = {signal.SIGTERM: end_by, signal.SIGHUP: end_by}
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._suspension.close()
        with suppress(OSError, termios.error):  # the terminal may be gone
            if self._keyboard is not None:
                self._keyboard.close()
            with self._lock:
                self._give_back()

    def press(self, key: str) -> None:
        """A key; what it changes is seen at once."""
        with self._lock:
            self.window.press(key)
            self._paint()
            if self.window.ended:
                self.ended.set()

    def add(self, line: str) -> None:
        with self._lock:
            self.window.time_line.add(line)

    def show(self, draw: Callable[[bool], RenderableType]) -> None:
        """Draw the picture anew, unless all stands still."""
        if not self.window.is_paused or self.window.is_stale:
            self.window.is_stale = False
            picture = drawn(self._console, draw(self.window.whole), self._console.width)
            with self._lock:
                self._picture = picture
        with self._lock:
            self._paint()

    def _paint(self) -> None:
        """All rows, the cursor left where it is; where somebody types, the last row is theirs."""
        width, height = self._console.size
        self._rows = rows_of(self._console, self.window, self._picture, width, height)[: height - self._is_typed_at]
        self._say("\x1b7")
        self._console.update_screen_lines(self._rows)
        self._say("\x1b8")

    def _take(self) -> None:
        self._console.set_alt_screen(True)
        self._console.show_cursor(self._is_typed_at)
        self._say(f"\x1b[{self._console.height};1H")

    def _give_back(self) -> None:
        """What was seen last stays in the terminal, but for the row of keys."""
        from rich.segment import Segments

        self._console.set_alt_screen(False)
        self._console.show_cursor(True)
        rows = self._rows[: None if self._is_typed_at else -1]
        for row in rows:
            self._console.print(Segments(row), soft_wrap=True)

    @contextmanager
    def _lend(self) -> Iterator[None]:
        """The terminal is the shell's until this goes on."""
        with self._lock:
            self._give_back()
            if self._keyboard is not None:
                self._keyboard.give_back()
            yield
            if self._keyboard is not None:
                self._keyboard.take()
            self._take()
            self._paint()

    def _say(self, codes: str) -> None:
        self._console.file.write(codes)
        self._console.file.flush()


def end_by(number: int, frame: FrameType | None) -> None:
    """End as others do at this signal, but with the terminal as it was, and as a member that leaves its group."""
    raise SystemExit(SIGNALLED + number)
