"""The lines of past events; new ones are queued while it is held."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

KEPT = 1_000
"""The number of lines kept for scrolling back."""
HELD = 10_000
"""The maximum number of queued lines; the oldest are dropped."""


class TimeLine:
    """Lines of events. Pure. The scroll position is counted from the end; at 0 the view follows new lines."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._held: deque[str] = deque(maxlen=HELD)
        self.is_held = False
        self.back = 0

    @property
    def waiting(self) -> int:
        """The number of queued lines."""
        return len(self._held)

    def add(self, line: str) -> None:
        (self._held if self.is_held else self._lines).append(line)
        if self.back and not self.is_held:
            self.back = min(self.back + 1, len(self._lines))  # the visible lines do not move

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        """Append all queued lines in their order."""
        self.is_held = False
        while self._held:
            self.add(self._held.popleft())

    def step(self) -> None:
        """Append the first queued line, if there is one."""
        if self._held:
            self._lines.append(self._held.popleft())

    def scroll(self, by: int, height: int) -> None:
        """Scroll back by a number of lines; a negative number scrolls towards the end."""
        self.back = max(0, min(self.back + by, len(self._lines) - height))

    def visible_lines(self, height: int) -> Sequence[str]:
        """Return at most `height` lines before the scroll position."""
        end = len(self._lines) - min(self.back, max(0, len(self._lines) - height))
        return list(self._lines)[max(0, end - height) : end]

    def place(self, height: int) -> tuple[int, int, int]:
        """Return the numbers of the first and last visible line, from 1, and the number of lines."""
        visible_lines = len(self.visible_lines(height))
        last = len(self._lines) - min(self.back, max(0, len(self._lines) - height))
        return last - visible_lines + 1, last, len(self._lines)
