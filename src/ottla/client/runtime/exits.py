"""The end of the process: what clients that were not closed still have to say, within a bounded time.

Runs at the interpreter's normal end. SIGTERM, whose default action ends a process without that, is made such an end:
SystemExit with status 143 in the main thread. That is done once in a process, when the first client is made, only in the
main thread, and only where nobody has a handler; `signal.signal(SIGTERM, SIG_DFL)` afterwards takes it back. What keeps
the process from ending by itself is given `PATIENCE_SECONDS`: then the clients are closed, and the signal has its way.
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
"""How long a process may take from SIGTERM to the end of its main thread's work."""
SHUTDOWN = threading._shutdown.__code__  # type: ignore[attr-defined]
"""What the interpreter calls when the program has come to its end; exceptions from there are dropped."""
Closer = Callable[[], None]


class Exits:
    """What is called at the end of the process, the newest first, each once."""

    def __init__(self) -> None:
        self._closers: dict[Closer, None] = {}
        self._running = threading.Lock()
        self._begun = False
        self._pid = os.getpid()
        self._held = False
        self._wanted = False
        self._runner: int | None = None
        self._signalled = False

    def add(self, closer: Closer) -> None:
        """Call this at the end, unless it is removed before."""
        if not self._begun or self._pid != os.getpid():
            self._begin()
        self._closers[closer] = None

    def remove(self, closer: Closer) -> None:
        self._closers.pop(closer, None)

    def run(self) -> None:
        """Close what is open; a second caller waits until the first is through."""
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
        """Whether SIGTERM came while this thread closes what is open; it is sent again when that is done."""
        self._signalled = self._runner == threading.get_ident()
        return self._signalled

    def hold(self) -> None:
        """Have SIGTERM wait for `release`: what it interrupts here, a client could not go on with at the end."""
        self._held = threading.get_ident() == threading.main_thread().ident

    def release(self) -> None:
        """Let SIGTERM in, which may have come meanwhile."""
        if self._held:
            self._held = False
            if self._wanted:
                self._wanted = False
                end_normally(signal.SIGTERM, None)

    def defer(self) -> bool:
        """Whether SIGTERM has to wait."""
        self._wanted = self._wanted or self._held
        return self._held

    def disown(self) -> None:
        """In a child that was forked: what is open is the parent's."""
        self._closers.clear()
        self._held = self._wanted = self._signalled = False
        self._runner = None
        self._running = threading.Lock()
        if signal.getsignal(signal.SIGTERM) is end_normally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._begun = False

    def _begin(self) -> None:
        first, self._begun, self._pid = not self._begun, True, os.getpid()
        if first:
            atexit.unregister(self.run)
            atexit.register(self.run)
            handle_sigterm()
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None and sys.modules["multiprocessing"].parent_process() is not None:
            multiprocessing.Finalize(None, self.run, exitpriority=0)  # its forked children end without atexit


def handle_sigterm() -> None:
    """Have SIGTERM end the process normally, where it would end it at once."""
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end_normally)
    except ValueError:  # an interpreter within another program's process has no signals
        pass


def end_normally(number: int, frame: FrameType | None) -> None:
    """The handler; a second signal ends the process at once."""
    if EXITS.defer():
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if EXITS.end_after_closing():
        return
    if is_shutting_down(frame):
        end_at_last()
        return
    last = threading.Timer(PATIENCE_SECONDS, end_at_last)
    last.daemon = True
    last.start()
    raise SystemExit(TERMINATED)


def is_shutting_down(frame: FrameType | None) -> bool:
    """Whether the main thread's work is done and it waits for other threads: nobody would catch what is raised there."""
    while frame is not None and frame.f_code is not SHUTDOWN:
        frame = frame.f_back
    return frame is not None or not threading.main_thread().is_alive()


def end_at_last() -> None:
    """Something keeps the process: a thread that is no daemon, or who caught SystemExit."""
    EXITS.run()
    os.kill(os.getpid(), signal.SIGTERM)


EXITS = Exits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=EXITS.disown)
