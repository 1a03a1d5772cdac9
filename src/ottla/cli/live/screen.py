"""The full-screen view of a terminal. At its end the former content returns, followed by the last view."""

from __future__ import annotations

import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from ottla.cli.live.frame import render_lines, rows_of
from ottla.cli.live.keyboard import keyboard_of
from ottla.cli.live.suspension import Suspension
from ottla.cli.live.time_line import TimeLine
from ottla.cli.live.window import LiveWindow

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment

SIGNALLED = 128
"""The exit status of a process that a signal ended is this plus the signal's number, as in shells."""


class Screen:
    """`with Screen(…) as screen: screen.show(picture)`; a thread handles keys."""

    def __init__(self, console: Console, *, stdin_is_data: bool = False) -> None:
        self._console = console
        self.window = LiveWindow(TimeLine())
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._picture: list[list[Segment]] = []
        self._rows: list[list[Segment]] = []
        self._is_typed_at = stdin_is_data and sys.stdin.isatty()
        self._keyboard = keyboard_of(self.press, stdin_is_data=stdin_is_data)
        self._suspension = Suspension(self._suspended)
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Screen:
        self._enter()
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
                self._leave()

    def press(self, key: str) -> None:
        """Handle a key and repaint."""
        with self._lock:
            self.window.press(key)
            self._paint()
            if self.window.ended:
                self.ended.set()

    def add(self, line: str) -> None:
        with self._lock:
            self.window.time_line.add(line)

    def show(self, draw: Callable[[bool], RenderableType]) -> None:
        """Redraw the picture unless the view is paused."""
        if not self.window.is_paused or self.window.is_stale:
            self.window.is_stale = False
            picture = render_lines(self._console, draw(self.window.whole), self._console.width)
            with self._lock:
                self._picture = picture
        with self._lock:
            self._paint()

    def _paint(self) -> None:
        """Paint all rows without moving the cursor. If standard input is typed into, the last row is left for it."""
        width, height = self._console.size
        self._rows = rows_of(self._console, self.window, self._picture, width, height)[: height - self._is_typed_at]
        self._write("\x1b7")
        self._console.update_screen_lines(self._rows)
        self._write("\x1b8")

    def _enter(self) -> None:
        self._console.set_alt_screen(True)
        self._console.show_cursor(self._is_typed_at)
        self._write(f"\x1b[{self._console.height};1H")

    def _leave(self) -> None:
        """Leave the last view in the terminal, without the row of keys."""
        from rich.segment import Segments

        self._console.set_alt_screen(False)
        self._console.show_cursor(True)
        rows = self._rows[: None if self._is_typed_at else -1]
        for row in rows:
            self._console.print(Segments(row), soft_wrap=True)

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """Return the terminal to the shell until the program resumes."""
        with self._lock:
            self._leave()
            if self._keyboard is not None:
                self._keyboard.restore()
            yield
            if self._keyboard is not None:
                self._keyboard.enter_cbreak()
            self._enter()
            self._paint()

    def _write(self, codes: str) -> None:
        self._console.file.write(codes)
        self._console.file.flush()


def end_by(number: int, frame: FrameType | None) -> None:
    """Exit with the status of a signal; cleanup restores the terminal and lets a member leave its group."""
    raise SystemExit(SIGNALLED + number)
