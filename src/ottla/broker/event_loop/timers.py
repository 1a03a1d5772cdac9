"""Timers: callbacks by deadline. Cancelling one is cheap.

There is no clock here: the loop passes the time.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Callable

from ottla.clock import Clock
from ottla.errors import KafkaError

log = logging.getLogger(__name__)

COMPACT_FROM = 64
"""The number of cancelled entries from which they are removed."""


class Timer:
    """A callback that waits for its deadline."""

    __slots__ = ("callback", "deadline")

    def __init__(self, deadline: float, callback: Callable[[], None]) -> None:
        self.deadline = deadline
        self.callback: Callable[[], None] | None = callback


class Timers:
    """Timers of one loop, earliest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def schedule(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Have `callback` called at `deadline`, a reading of the monotonic clock."""
        timer = Timer(deadline, callback)
        heapq.heappush(self._heap, (deadline, next(self._serial), timer))
        return timer

    def cancel(self, timer: Timer) -> None:
        """Cancel a timer. Does nothing if it has fired."""
        if timer.callback is None:
            return
        timer.callback = None
        self._cancelled += 1
        if self._cancelled > COMPACT_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def time_until_next(self, now: float) -> float | None:
        """Return the seconds until the next timer is due, None without timers."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        return max(0.0, heap[0][0] - now) if heap else None

    def run(self, now: float) -> None:
        """Call what is due; what is set for now by that waits for the next turn."""
        limit = next(self._serial)
        while self._heap and self._heap[0][0] <= now and self._heap[0][1] < limit:
            timer = heapq.heappop(self._heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is None:
                self._cancelled -= 1
            else:
                callback()


def repeat(
    timers: Timers,
    clock: Clock,
    name: str,
    work: Callable[[], None],
    seconds: Callable[[], float],
    *,
    first_seconds: float | None = None,
    fatal: tuple[type[Exception], ...] = (),
) -> None:
    """Run `work` again and again, `seconds()` after each run; the first run is due after `first_seconds`.

    A failed run is logged and does not end the repetition. Only errors of the kinds in `fatal` are raised to the loop.
    """

    def run() -> None:
        try:
            work()
        except fatal:
            raise
        except KafkaError as error:
            log.error("%s", error)
        except Exception:
            log.exception("a periodic task failed, and is retried at its next run task=%s", name)
        timers.schedule(clock.monotonic() + seconds(), run)

    timers.schedule(clock.monotonic() + (seconds() if first_seconds is None else first_seconds), run)
