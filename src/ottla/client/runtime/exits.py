"""Closes open clients at the end of the process, within a bounded time.

Runs at the interpreter's normal exit. The default action of SIGTERM skips that, so it is replaced: SIGTERM raises
SystemExit with status 143 in the main thread. The handler is installed once per process, with the first client, only from
the main thread, and only if the program has no handler; `signal.signal(SIGTERM, SIG_DFL)` removes it. If the process has not
ended after `PATIENCE_SECONDS`, the clients are closed and the signal is sent again.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

LOG = logging.getLogger(__name__)
TERMINATED = 128 + signal.SIGTERM
PATIENCE_SECONDS = 10.0
"""The time from SIGTERM until the main thread must have ended."""
SHUTDOWN = threading._shutdown.__code__  # type: ignore[attr-defined]
"""The function in which the interpreter waits for threads at its end; it drops exceptions."""
Closer = Callable[[], None]


class Exits:
    """Functions called at the end of the process, the newest first, each once."""

    def __init__(self) -> None:
        self._closers: dict[Closer, None] = {}
        self._running = threading.Lock()
        self._has_started = False
        self._pid = os.getpid()
        self._held = False
        self._wanted = False
        self._runner: int | None = None
        self._signalled = False

    def add(self, closer: Closer) -> None:
        """Register a function that is called when the process ends, unless it is removed before."""
        if not self._has_started or self._pid != os.getpid():
            self._begin()
        self._closers[closer] = None

    def remove(self, closer: Closer) -> None:
        self._closers.pop(closer, None)

    def run(self) -> None:
        """Close the open clients; a second caller waits until the first has finished."""
        with self._running:
            self._runner = threading.get_ident()
            while self._closers:
                self._close_newest()
            self._runner = None
        if self._signalled:
            os.kill(os.getpid(), signal.SIGTERM)

    def _close_newest(self) -> None:
        closer, _ = self._closers.popitem()
        try:
            closer()
        except Exception:
            LOG.exception("a client could not be closed at the end of the process")

    def end_after_closing(self) -> bool:
        """Return True if SIGTERM arrived while this thread closes clients; it is sent again afterwards."""
        self._signalled = self._runner == threading.get_ident()
        return self._signalled

    def hold(self) -> None:
        """Delay SIGTERM until `release`: a client could not be closed after an interrupt here."""
        self._held = threading.get_ident() == threading.main_thread().ident

    def release(self) -> None:
        """End the delay of SIGTERM; handle one that has arrived meanwhile."""
        if self._held:
            self._held = False
            if self._wanted:
                self._wanted = False
                end_normally(signal.SIGTERM, None)

    def defer(self) -> bool:
        """Return True if SIGTERM is delayed."""
        self._wanted = self._wanted or self._held
        return self._held

    def disown(self) -> None:
        """Forget the parent's clients in a forked child."""
        self._closers.clear()
        self._held = self._wanted = self._signalled = False
        self._runner = None
        self._running = threading.Lock()
        if signal.getsignal(signal.SIGTERM) is end_normally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._has_started = False

    def _begin(self) -> None:
        first, self._has_started, self._pid = not self._has_started, True, os.getpid()
        if first:
            atexit.unregister(self.run)
            atexit.register(self.run)
            handle_sigterm()
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None and sys.modules["multiprocessing"].parent_process() is not None:
            multiprocessing.Finalize(None, self.run, exitpriority=0)  # its forked children end without atexit


def handle_sigterm() -> None:
    """Install the handler for SIGTERM in place of the default action."""
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end_normally)
    except ValueError:  # an interpreter within another program's process has no signals
        pass


def end_normally(number: int, frame: FrameType | None) -> None:
    """Restore the default handler, with which a second signal ends the process at once."""
    if EXITS.defer():
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if EXITS.end_after_closing():
        return
    if is_shutting_down(frame):
        end_process()
        return
    last = threading.Timer(PATIENCE_SECONDS, end_process)
    last.daemon = True
    last.start()
    raise SystemExit(TERMINATED)


def is_shutting_down(frame: FrameType | None) -> bool:
    """Return True if the main thread has finished and waits for other threads: an exception there would be dropped."""
    while frame is not None and frame.f_code is not SHUTDOWN:
        frame = frame.f_back
    return frame is not None or not threading.main_thread().is_alive()


def end_process() -> None:
    """End a process that a non-daemon thread, or code that caught SystemExit, keeps running."""
    EXITS.run()
    os.kill(os.getpid(), signal.SIGTERM)


EXITS = Exits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=EXITS.disown)
