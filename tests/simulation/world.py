"""Virtual time, chance, and the transcript of what happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

KEPT_LINES = 400
WALL_MS = 1_700_000_000_000


class World:
    """The shared state of a history: time, randomness and events. It is a `Clock`, too."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 1.0
        self.wall_offset_ms = WALL_MS
        """By how much the calendar differs from the span; it may be set."""
        self.story: deque[tuple[float, str, tuple[Any, ...]]] = deque(maxlen=KEPT_LINES)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return self.wall_offset_ms + round(self.now * 1000)

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Schedule an event at a moment."""
        self._count += 1
        heappush(self._due, (moment, self._count, act))

    def after(self, span: float, act: Callable[[], None]) -> None:
        """Schedule an event after so many seconds."""
        self.at(self.now + span, act)

    def run_until(self, moment: float) -> None:
        """Advance the time, and run every due event."""
        due = self._due
        while due and due[0][0] <= moment:
            at, _, act = heappop(due)
            self.now = max(self.now, at)
            act()
        self.now = max(self.now, moment)

    def say(self, who: str, *what: Any) -> None:
        """Add a line to the transcript; it is formatted only when it is read."""
        self.story.append((self.now, who, what))

    def likely(self, probability: float) -> bool:
        return self.chance.random() < probability

    def transcript(self) -> str:
        """Return the last events."""
        return "\n".join(f"{at:9.3f} {who:>12}  {' '.join(map(str, what))}" for at, who, what in self.story)
