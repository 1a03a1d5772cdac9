"""Named timers of state machines. Postponing a timer, as every heartbeat does, costs one dictionary entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ottla.broker.event_loop.timers import Timer, Timers
from ottla.coordination.machine import Alarm


class Alarms:
    """The timers of one state machine."""

    def __init__(self, timers: Timers, on_expiry: Callable[[Hashable], None]) -> None:
        """`on_expiry` is called with the name of each timer that expires."""
        self._timers = timers
        self._on_expiry = on_expiry
        self._due: dict[Hashable, float] = {}
        self._set: dict[Hashable, Timer] = {}

    def set(self, alarm: Alarm) -> None:
        """Set, postpone, advance or cancel a timer."""
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
        # Most timers are postponed before they expire: the loop's timer stays, and compares the deadlines when it expires.
        if timer is None or at < timer.deadline:
            if timer is not None:
                self._timers.cancel(timer)
            self._arm(name, at)

    def find_deadline(self, name: Hashable) -> float | None:
        """Return the deadline of a timer; None if it is not set."""
        return self._due.get(name)

    def clear(self) -> None:
        for timer in self._set.values():
            self._timers.cancel(timer)
        self._set.clear()
        self._due.clear()

    def _arm(self, name: Hashable, at: float) -> None:
        timer = self._timers.schedule(at, lambda: self._check_deadline(name, at))
        self._set[name] = timer

    def _check_deadline(self, name: Hashable, at: float) -> None:
        del self._set[name]
        due = self._due[name]
        if due > at:
            self._arm(name, due)
        else:
            del self._due[name]
            self._on_expiry(name)
