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

from ottla import clock as machine
from ottla.clock import Clock, SystemClock

CAPACITY = 10_000


class Moment(NamedTuple):
    """An event and when it was."""

    at_ms: int
    """Milliseconds since the epoch."""
    event: Any
    """Its text is for people."""


Told = tuple[int, str, tuple[Any, ...]]
"""When, of which kind, and of what its event is made."""
MAKERS: dict[str, Callable[..., Any]] = {}
"""What makes an event, by its kind."""
ITSELF = ""
"""In place of a kind: the event is built already, and the only fact."""


def maker(kind: type[Any], make: Callable[..., Any] | None = None) -> str:
    """The name by which rings know events of that kind, which are built of facts by `make`, or by the kind itself.

    It is in each tuple, where a function would have the collector walk through all of them; and it goes to whoever looks from another process.
    """
    MAKERS[kind.__name__] = make or kind
    return kind.__name__


def moment_of(told: Told) -> Moment:
    at_ms, kind, facts = told
    return Moment(at_ms, facts[0] if kind == ITSELF else MAKERS[kind](*facts))


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
        return [moment_of(told) for told in self.take_told()]

    def take_told(self) -> list[Told]:
        """The same as it was told, nothing built of it."""
        taken: list[Told] = []
        with suppress(IndexError):  # another thread may take too
            for _ in range(len(self._ring)):
                taken.append(self._ring.popleft())  # noqa: PERF401  a generator would cost as much again
        self._taken += len(taken)
        return taken

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
        self._clock = None if isinstance(clock, SystemClock) else clock
        """None is the machine's, which is read in C where this is compiled."""
        self._lock = threading.Lock()
        self._traces: tuple[Trace, ...] = ()
        self._hearers: tuple[Callable[[Any], None], ...] = ()

    def tell(self, event: Any) -> None:
        self.tell_of(ITSELF, event)
        for hear in self._hearers:
            hear(event)

    def tell_of(self, kind: str, *facts: Any) -> None:
        """Tell the event that a `maker` makes of these facts, for what is frequent: it is built once somebody reads it.

        The facts have to stay what they are, and had better be numbers and texts: they are kept for as long as the event.
        """
        self.tell_facts(kind, facts)

    def tell_facts(self, kind: str, facts: tuple[Any, ...]) -> None:
        """The same, as compiled code calls it."""
        at_ms = machine.wall_ms() if self._clock is None else self._clock.wall_ms()
        told = (at_ms, kind, facts)
        for trace in self._traces:
            trace.add(told)

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
