"""The turns of the sender loop, and the threads that wait for the end of one.

A thread waits in `Steps`, which check their condition after each turn. It waits at a lock of its own, which the sender
releases: an exception of a signal handler in the waiting thread cannot leave anything locked that the sender needs (a
`threading.Condition` could stay locked). A turn costs nothing while no thread waits.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, TypeVar

from ottla.client.runtime.steps import Steps

T = TypeVar("T")


class Turns:
    """Ended by the sender thread, awaited by users' threads."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: deque[Any] = deque()
        """The locks of threads that wait, or have waited since the last turn."""

    def end_turn(self) -> None:
        self._count += 1
        while self._waiting:  # a thread that starts to wait now sees the new count
            self._waiting.popleft().release()

    def run(self, steps: Steps[T]) -> T:
        """Run steps, blocking while they wait. Exceptions of the wait are thrown into the steps."""
        try:
            seen = self._count
            span = next(steps)
            while True:
                try:
                    self._wait(seen, span)
                    seen = self._count
                except BaseException as error:
                    span = steps.throw(error)
                else:
                    span = next(steps)
        except StopIteration as done:
            outcome: T = done.value
            return outcome

    def _wait(self, seen: int, span: float) -> None:
        """Wait until a turn has ended after turn `seen`, for `span` seconds at most."""
        gate = threading.Lock()
        gate.acquire()
        self._waiting.append(gate)
        if self._count == seen:
            gate.acquire(timeout=max(0.0, min(span, threading.TIMEOUT_MAX)))
