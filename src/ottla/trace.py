"""Events of clients and brokers in bounded ring buffers, for tracing.

 Any thread may emit and read events. Without a trace a source pays only for a test of `active`; with one, for a tuple
of facts: the event object is created when it is read. If the facts are only numbers and text, the garbage collector
does not track the tuple, which saves more than half of the cost of thousands of events per second.
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
    """An event and its time."""

    at_ms: int
    """Milliseconds since the epoch."""
    event: Any
    """`str(event)` is its text for people."""


RecordedEvent = tuple[int, str, tuple[Any, ...]]
"""The time in ms, the kind, and the facts of the event."""
MAKERS: dict[str, Callable[..., Any]] = {}
"""The functions that create events, by kind."""
ITSELF = ""
"""In place of a kind: the event object exists already, and is the only fact."""


def maker(kind: type[Any], make: Callable[..., Any] | None = None) -> str:
    """Register a kind of event, which is created from facts by `make`, or by the class itself; return its name.

     The name is stored in each tuple, since a function would make the garbage collector track it; it is also sent to
    readers in other processes.
    """
    MAKERS[kind.__name__] = make or kind
    return kind.__name__


def moment_of(recorded: RecordedEvent) -> Moment:
    at_ms, kind, facts = recorded
    return Moment(at_ms, facts[0] if kind == ITSELF else MAKERS[kind](*facts))


class Trace:
    """The latest events of one source since the creation of the trace; when it is full, the oldest are dropped.

    Close it, or use it in a `with` statement: an open trace makes each event more expensive.
    """

    def __init__(self, stream: EventStream, capacity: int) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int):
            raise TypeError(f"capacity = {capacity!r}: must be a whole number, of events to keep")
        if capacity < 1:
            raise ValueError(f"capacity = {capacity}: must be at least 1, the number of events to keep")
        self._stream = stream
        self._ring: deque[RecordedEvent] = deque(maxlen=capacity)
        self.recorded_count = 0
        """The total number of events."""
        self._taken = 0

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.events())

    def __len__(self) -> int:
        return len(self._ring)

    def events(self) -> list[Moment]:
        """Return the stored events, the oldest first, and keep them."""
        while True:
            try:
                return [moment_of(recorded) for recorded in list(self._ring)]
            except RuntimeError:  # it grew while it was copied
                continue

    def take(self) -> list[Moment]:
        """Return the stored events, the oldest first, and remove them."""
        return [moment_of(recorded) for recorded in self.take_recorded()]

    def take_recorded(self) -> list[RecordedEvent]:
        """Remove and return the stored facts without creating events."""
        taken: list[RecordedEvent] = []
        with suppress(IndexError):  # another thread may take too
            for _ in range(len(self._ring)):
                taken.append(self._ring.popleft())  # noqa: PERF401  a generator would cost as much again
        self._taken += len(taken)
        return taken

    @property
    def dropped(self) -> int:
        """The number of unread events that were dropped."""
        return max(0, self.recorded_count - self._taken - len(self._ring))

    def add(self, recorded: RecordedEvent) -> None:
        """Add an event; called by the stream."""
        self.recorded_count += 1
        self._ring.append(recorded)

    def close(self) -> None:
        """Stop recording; stored events stay readable. May be called again."""
        self._stream.unsubscribe(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class EventStream:
    """The events of one source, distributed to its traces and listeners."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.active = False
        """True if a trace is open: test it before emitting a frequent event."""
        self.has_rare_listener = False
        """True if a trace is open or a listener for rare events is registered."""
        self._clock = None if isinstance(clock, SystemClock) else clock
        """None for the system clock, which compiled code reads in C."""
        self._lock = threading.Lock()
        self._traces: tuple[Trace, ...] = ()
        self._listeners: tuple[Callable[[Any], None], ...] = ()

    def publish(self, event: Any) -> None:
        self.publish_kind(ITSELF, event)
        for listener in self._listeners:
            listener(event)

    def publish_kind(self, kind: str, *facts: Any) -> None:
        """Emit an event by its `maker` and facts, for frequent events: the object is created only when it is read.

        The facts must not change, and should be numbers and text: they are stored as long as the event.
        """
        self.publish_facts(kind, facts)

    def publish_facts(self, kind: str, facts: tuple[Any, ...]) -> None:
        """Emit as `publish_kind` does; called by compiled code."""
        at_ms = machine.wall_ms() if self._clock is None else self._clock.wall_ms()
        recorded = (at_ms, kind, facts)
        for trace in self._traces:
            trace.add(recorded)

    def add_rare_listener(self, listener: Callable[[Any], None]) -> None:
        """Register a listener for events that are not emitted by `publish_kind`; it runs in the emitting thread."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
            self.has_rare_listener = True

    def trace(self, capacity: int = CAPACITY) -> Trace:
        trace = Trace(self, capacity)
        with self._lock:
            self._traces = (*self._traces, trace)
            self.active = self.has_rare_listener = True
        return trace

    def unsubscribe(self, trace: Trace) -> None:
        """Remove a trace."""
        with self._lock:
            self._traces = tuple(each for each in self._traces if each is not trace)
            self.active = bool(self._traces)
            self.has_rare_listener = self.active or bool(self._listeners)
