"""What has happened, as lines; while it is held, what is new waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

KEPT = 1_000
"""Lines one can scroll back to."""
HELD = 10_000
"""Lines that wait at most; the oldest go first."""


class TimeLine:
    """Pure. How far it is scrolled back is counted from its end, which it follows while that is 0."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._held: deque[str] = deque(maxlen=HELD)
        self.is_held = False
        self.back = 0

    @property
    def waiting(self) -> int:
        """How many lines are held back."""
        return len(self._held)

    def add(self, line: str) -> None:
        (self._held if self.is_held else self._lines).append(line)
        if self.back and not self.is_held:
            self.back = min(self.back + 1, len(self._lines))  # what is looked at stays where it is

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        """Take all that waited, in its order."""
        self.is_held = False
        while self._held:
            self.add(self._held.popleft())

    def step(self) -> None:
        """Take the next that waited, if one does."""
        if self._held:
            self._lines.append(self._held.popleft())

    def scroll(self, by: int, height: int) -> None:
        """So many lines back, or with a negative number towards the end."""
        self.back = max(0, min(self.back + by, len(self._lines) - height))

    def shown(self, height: int) -> Sequence[str]:
        """The lines that have room."""
        end = len(self._lines) - min(self.back, max(0, len(self._lines) - height))
        return list(self._lines)[max(0, end - height) : end]

    def place(self, height: int) -> tuple[int, int, int]:
        """The first and the last line that are shown, from 1 on, and how many there are."""
        shown = len(self.shown(height))
        last = len(self._lines) - min(self.back, max(0, len(self._lines) - height))
        return last - shown + 1, last, len(self._lines)
