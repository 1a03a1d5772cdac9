"""Alarms of machines, by name: set again as often as a heartbeat comes, for the price of a dictionary's entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ottla.broker.timers import Timer, Timers
from ottla.coordination.machine import Alarm


class Alarms:
    """The alarms of one machine."""

    def __init__(self, timers: Timers, ring: Callable[[Hashable], None]) -> None:
        """`ring` is called with the name of each alarm that goes off."""
        self._timers = timers
        self._ring = ring
        self._due: dict[Hashable, float] = {}
        self._set: dict[Hashable, Timer] = {}

    def set(self, alarm: Alarm) -> None:
        """Set, put off, bring forward or cancel an alarm."""
        name, at = alarm.name, alarm.at
        timer = self._set.get(name)
        if alarm.keep and name in self._due:
            return
        if at is None:
            self._due.pop(name, None)
            if timer is not None:
                del self._set[name]
                self._timers.cancel(timer)
            return
        self._due[name] = at
        # Most are put off before they go off: the timer stays, and looks again when it rings.
        if timer is None or at < timer.deadline:
            if timer is not None:
                self._timers.cancel(timer)
            self._arm(name, at)

    def due(self, name: Hashable) -> float | None:
        """When it goes off; None where it is not set."""
        return self._due.get(name)

    def clear(self) -> None:
        for timer in self._set.values():
            self._timers.cancel(timer)
        self._set.clear()
        self._due.clear()

    def _arm(self, name: Hashable, at: float) -> None:
        timer = self._timers.at(at, lambda: self._look(name, at))
        self._set[name] = timer

    def _look(self, name: Hashable, at: float) -> None:
        del self._set[name]
        due = self._due[name]
        if due > at:
            self._arm(name, due)
        else:
            del self._due[name]
            self._ring(name)
