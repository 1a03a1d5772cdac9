"""A task for each of many partitions, a few milliseconds at a time so that no request waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.partition import Partition
from ottla.clock import Clock

log = logging.getLogger(__name__)
STINT_SECONDS = 0.002
PAUSE_SECONDS = 0.02
"""The pause between two steps: a sweep takes a tenth of the loop's time at most."""


class PartitionSweep:
    """Runs a task over partitions, one walk at a time."""

    def __init__(self, timers: Timers, clock: Clock, chore: Callable[[Partition], None]) -> None:
        """Sweep with `chore`. An error of `chore` is logged, and the sweep continues with the next partition."""
        self._timers = timers
        self._clock = clock
        self._chore = chore
        self._left: Iterator[Partition] | None = None

    def start(self, partitions: Iterable[Partition]) -> None:
        """Walk over partitions, unless the last walk is still under way."""
        if self._left is None:
            self._left = iter(list(partitions))
            self._continue()

    def _continue(self) -> None:
        assert self._left is not None
        end = self._clock.monotonic() + STINT_SECONDS
        for partition in self._left:
            try:
                self._chore(partition)
            except Exception:
                log.exception("a task failed for one partition, and continues with the next partition=%s", partition)
            if self._clock.monotonic() >= end:
                self._timers.schedule(self._clock.monotonic() + PAUSE_SECONDS, self._continue)
                return
        self._left = None
