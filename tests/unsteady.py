"""A pytest plugin that pauses processes at random, as on an overloaded machine.

`make test ARGS=--unsteady` stops processes that run tests, and processes that tests have started, each for up to a
second. A new process is stopped often, so that the process that was started first is not always ready first. A failure
means that the test waits too briefly or relies on an order that nothing ensures, or that the tested code does. A test
that stops processes itself may see one continue too early.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

LONGEST_SECONDS = 1.0
TURN_SECONDS = 0.1
AT_ONCE = 3
"""The number of processes that are paused at once. With more, the whole run is blocked."""
BORN = 0.3
"""The probability that a new process is stopped."""
LATER = 0.5
"""The probability per turn that one of the other processes is stopped."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--unsteady", action="store_true", help="stop processes for a while, now and then, as a busy machine does"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Pause processes from the main process.

    If it runs the tests itself, only the processes that they start are paused.
    """
    if not session.config.option.unsteady or hasattr(session.config, "workerinput"):
        return (yield)
    with unsteady():
        return (yield)


@contextmanager
def unsteady() -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=Stops(random.Random()).go_on, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Stops:
    """The paused processes, each with the time when it continues."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._known: set[psutil.Process] = set()
        self._until: dict[psutil.Process, float] = {}

    def go_on(self, over: threading.Event) -> None:
        """Stop processes and continue them until `over` is set."""
        try:
            while not over.wait(TURN_SECONDS):
                self._turn(time.monotonic(), psutil.Process().children(recursive=True))
        finally:
            for process in list(self._until):
                self._wake(process)

    def _turn(self, now: float, family: list[psutil.Process]) -> None:
        for process in [each for each, until in self._until.items() if until <= now]:
            self._wake(process)
        born = [each for each in family if each not in self._known]
        self._known = set(family)
        for process in born:
            if self._chance.random() < BORN:
                self._stop(process, now)
        if family and self._chance.random() < LATER:
            self._stop(self._chance.choice(family), now)

    def _stop(self, process: psutil.Process, now: float) -> None:
        """Pause a process, usually briefly. Processes that are already stopped are left alone."""
        with suppress(psutil.Error):
            if len(self._until) < AT_ONCE and process.status() != psutil.STATUS_STOPPED:
                process.send_signal(signal.SIGSTOP)
                self._until[process] = now + LONGEST_SECONDS * self._chance.random() ** 2

    def _wake(self, process: psutil.Process) -> None:
        del self._until[process]
        with suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
