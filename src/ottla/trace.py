"""What happens, as it happens: typed events in bounded rings, for whoever listens.

Any thread may tell and any may read. While nobody listens, a source pays for a truth test where it would build an event;
while somebody does, for a tuple of facts: the event is built of them when it is read. Where these are numbers and texts alone the
garbage collector lets them be, which is more than half of what thousands of events a second cost.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from ottla.clock import Clock, SystemClock

CAPACITY = 10_000


class Moment(NamedTuple):
    """An event and when it was."""

    at_ms: int
    """Milliseconds since the epoch."""
    event: Any
    """Its text is for people."""


Told = tuple[int, int, tuple[Any, ...]]
"""When, by which maker, and of what its event is made."""
MAKERS: list[Callable[..., Any]] = []


def maker(make: Callable[..., Any]) -> int:
    """The number by which rings know what makes an event: a function in each tuple would have the collector walk through all of them."""
    MAKERS.append(make)
    return len(MAKERS) - 1


ITSELF = maker(lambda event: event)
"""Of an event that is built already."""


def moment_of(told: Told) -> Moment:
    at_ms, number, facts = told
    return Moment(at_ms, MAKERS[number](*facts))


class Trace:
    """The latest events of one source, from the moment it was made; when it is full the oldest go.

    Close it, or use it in a `with` statement: an open one costs something with each event.
    """

    def __init__(self, stream: EventStream, capacity: int) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int):
            raise TypeError(f"capacity = {capacity!r}: must be a whole number, of events to keep")
        if capacity < 1:
            raise ValueError(f"capacity = {capacity}: must be at least 1, the number of events to keep")
        self._stream = stream
        self._ring: deque[Told] = deque(maxlen=capacity)
        self.told = 0
        """How many events there were in all."""
        self._taken = 0

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.events())

    def __len__(self) -> int:
        return len(self._ring)

    def events(self) -> list[Moment]:
        """What is there, the oldest first; it stays there."""
        while True:
            try:
                return [moment_of(told) for told in list(self._ring)]
            except RuntimeError:  # it grew while it was copied
                continue

    def take(self) -> list[Moment]:
        """What is there, the oldest first; it is there no longer."""
        taken: list[Told] = []
        with suppress(IndexError):  # another thread may take too
            taken.extend(self._ring.popleft() for _ in range(len(self._ring)))
        self._taken += len(taken)
        return [moment_of(told) for told in taken]

    @property
    def dropped(self) -> int:
        """How many went unseen because newer ones needed the room."""
        return max(0, self.told - self._taken - len(self._ring))

    def add(self, told: Told) -> None:
        """One more; the stream's business."""
        self.told += 1
        self._ring.append(told)

    def close(self) -> None:
        """Listen no longer; what is there stays readable. May be called again."""
        self._stream.unsubscribe(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class EventStream:
    """Where a source tells its events."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.active = False
        """Whether anybody listens: look before building an event that is frequent."""
        self.rare_are_heard = False
        """Whether anybody does to what is rare at least."""
        self._wall_ms = (clock or SystemClock()).wall_ms
        self._lock = threading.Lock()
        self._traces: tuple[Trace, ...] = ()
        self._hearers: tuple[Callable[[Any], None], ...] = ()

    def tell(self, event: Any) -> None:
        self.tell_of(ITSELF, event)
        for hear in self._hearers:
            hear(event)

    def tell_of(self, number: int, *facts: Any) -> None:
        """Tell the event that a `maker` makes of these facts, for what is frequent: it is built once somebody reads it.

        The facts have to stay what they are, and had better be numbers and texts: they are kept for as long as the event.
        """
        for trace in self._traces:
            trace.add((self._wall_ms(), number, facts))

    def hear_what_is_rare(self, hear: Callable[[Any], None]) -> None:
        """Have `hear` called with each event that is not told by `tell_of`, on the thread that tells."""
        with self._lock:
            self._hearers = (*self._hearers, hear)
            self.rare_are_heard = True

    def trace(self, capacity: int = CAPACITY) -> Trace:
        trace = Trace(self, capacity)
        with self._lock:
            self._traces = (*self._traces, trace)
            self.active = self.rare_are_heard = True
        return trace

    def unsubscribe(self, trace: Trace) -> None:
        """Tell one listener no more."""
        with self._lock:
            self._traces = tuple(each for each in self._traces if each is not trace)
            self.active = bool(self._traces)
            self.rare_are_heard = self.active or bool(self._hearers)
