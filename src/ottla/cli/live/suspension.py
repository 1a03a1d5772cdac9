"""Ctrl-Z while a view has the terminal: it is given back before the program stands still, and taken when that goes on."""

from __future__ import annotations

import os
import signal
import termios
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import Any


class Suspension:
    """From `open` to `close`. Around the time in which the program stands still `lend` is entered, by a thread.

    The handler of a signal comes amid whatever the first thread does, also amid a write, where another write is an error.
    """

    def __init__(self, lend: Callable[[], AbstractContextManager[None]]) -> None:
        self._lend = lend
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="ottla-suspension", daemon=True)
        self._handlers: dict[int, Any] = {}

    def open(self) -> None:
        self._thread.start()
        handlers = {signal.SIGTSTP: self._asked, signal.SIGCONT: self._goes_on}
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def close(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        self._thread.join()
        os.close(self._woken)

    def _run(self) -> None:
        while os.read(self._woken, 1):
            with suppress(OSError, termios.error), self._lend():  # the terminal may be gone
                # To this thread: it stands still before it does anything else.
                signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        """The next one is the thread's own, and has to stop us."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.write(self._wake, b".")

    def _goes_on(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTSTP, self._asked)
