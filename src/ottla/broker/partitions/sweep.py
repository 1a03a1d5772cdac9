"""A chore for each of many partitions, done a few milliseconds at a time so that no request waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from ottla.broker.partitions.partition import Partition
from ottla.broker.timers import Timers
from ottla.clock import Clock

log = logging.getLogger(__name__)
STINT_SECONDS = 0.002
PAUSE_SECONDS = 0.02
"""Between two stints: a sweep takes a tenth of the loop at most."""


class Sweep:
    """One walk over partitions after another, never two at once."""

    def __init__(self, timers: Timers, clock: Clock, chore: Callable[[Partition], None]) -> None:
        """An error of `chore` is logged, and the sweep continues with the next partition."""
        self._timers = timers
        self._clock = clock
        self._chore = chore
        self._left: Iterator[Partition] | None = None

    def begin(self, partitions: Iterable[Partition]) -> None:
        """Walk over them, unless the last walk is still under way."""
        if self._left is None:
            self._left = iter(list(partitions))
            self._go_on()

    def _go_on(self) -> None:
        assert self._left is not None
        end = self._clock.monotonic() + STINT_SECONDS
        for partition in self._left:
            try:
                self._chore(partition)
            except Exception:
                log.exception("a chore failed, and continues with the next partition partition=%s", partition)
            if self._clock.monotonic() >= end:
                self._timers.at(self._clock.monotonic() + PAUSE_SECONDS, self._go_on)
                return
        self._left = None
