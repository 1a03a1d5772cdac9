"""The turns of the sender, as those who wait for what comes of them see them.

Whoever waits does so in `Steps`, which look again each time a turn has ended. Costs a turn nothing while nobody waits.
"""

from __future__ import annotations

import threading
from typing import TypeVar

from ottla.client.runtime.steps import Steps

T = TypeVar("T")


class Turns:
    """Ended by the sender's thread, waited for by those of users."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting = 0
        self._ended = threading.Condition()

    def end(self) -> None:
        self._count += 1
        if self._waiting:  # who begins to wait now has looked at the count before, or sees the new one
            with self._ended:
                self._ended.notify_all()

    def run(self, steps: Steps[T]) -> T:
        """Do what waits, blocked meanwhile; what interrupts the waiting is raised where the steps wait."""
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
        """Until a turn has ended after `seen` of them, for `span` seconds at most."""
        with self._ended:
            self._waiting += 1
            try:
                self._ended.wait_for(lambda: self._count != seen, min(span, threading.TIMEOUT_MAX))
            finally:
                self._waiting -= 1
