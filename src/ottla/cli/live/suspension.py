"""Ctrl-Z in a full-screen view: restore the terminal before the process stops, redraw after it continues."""

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
    """Handle Ctrl-Z from `open` to `close`. While the process is stopped, the context `suspended` is entered.

     A thread does this, because a signal handler interrupts the main thread anywhere, even in a write, and a nested
    write fails.
    """

    def __init__(self, suspended: Callable[[], AbstractContextManager[None]]) -> None:
        self._suspended = suspended
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="ottla-suspension", daemon=True)
        self._handlers: dict[int, Any] = {}

    def open(self) -> None:
        self._thread.start()
        handlers = {signal.SIGTSTP: self._handle_stop, signal.SIGCONT: self._handle_continue}
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def close(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        self._thread.join()
        os.close(self._woken)

    def _run(self) -> None:
        while os.read(self._woken, 1):
            with suppress(OSError, termios.error), self._suspended():  # the terminal may be gone
                # Sent to this thread, so that it stops before it continues.
                signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)

    def _handle_stop(self, number: int, frame: FrameType | None) -> None:
        """Restore the default action, so that the next SIGTSTP, sent by the thread, stops the process."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.write(self._wake, b".")

    def _handle_continue(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTSTP, self._handle_stop)
