"""The state of a view: scroll positions, help, pause.

Pure: it receives keys and sizes and has no access to a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.cli.live.time_line import TimeLine

SIDEWAYS = 16
"""Columns per key press."""
FAR = 1_000_000


class LiveWindow:
    """A picture above a time line; keys scroll one of them."""

    def __init__(self, time_line: TimeLine) -> None:
        self.time_line = time_line
        self.on_picture = False
        self.top = 0
        """The first visible line of the picture."""
        self.left = 0
        """The first visible column of the time line."""
        self.whole = self.helps = self.ended = False
        self.is_stale = False
        """True if the picture must be redrawn although the view is paused."""
        self.picture_height = self.time_line_height = self.picture_lines = 1
        self._actions: Mapping[str, Callable[[], None]] = {
            "q": self._end,
            "?": self._help,
            "escape": self._no_help,
            "tab": self._other_part,
            "m": self._more,
            "p": self._pause,
            "s": self._step,
            "up": lambda: self._scroll(-1),
            "down": lambda: self._scroll(1),
            "page up": lambda: self._scroll(-self._page),
            "page down": lambda: self._scroll(self._page),
            "home": lambda: self._scroll(-FAR),
            "end": lambda: self._scroll(FAR),
            "left": lambda: self._sideways(-SIDEWAYS),
            "right": lambda: self._sideways(SIDEWAYS),
        }

    @property
    def is_paused(self) -> bool:
        return self.time_line.is_held

    def press(self, key: str) -> None:
        """Execute the action of a key; unknown keys are ignored."""
        action = self._actions.get(key)
        if action is not None:
            action()

    def fit(self, picture_lines: int, picture_height: int, time_line_height: int) -> None:
        """Set the current sizes in lines."""
        self.picture_lines = picture_lines
        self.picture_height, self.time_line_height = picture_height, time_line_height
        self.top = max(0, min(self.top, picture_lines - picture_height))

    @property
    def _page(self) -> int:
        return max(1, (self.picture_height if self.on_picture else self.time_line_height) - 1)

    def _scroll(self, down: int) -> None:
        if self.on_picture:
            self.top = max(0, min(self.top + down, self.picture_lines - self.picture_height))
        else:
            self.time_line.scroll(-down, self.time_line_height)

    def _sideways(self, by: int) -> None:
        self.left = max(0, self.left + by)

    def _end(self) -> None:
        self.ended = True

    def _help(self) -> None:
        self.helps = not self.helps

    def _no_help(self) -> None:
        self.helps = False

    def _other_part(self) -> None:
        self.on_picture = not self.on_picture

    def _more(self) -> None:
        self.whole = not self.whole
        self.is_stale = True

    def _pause(self) -> None:
        if self.is_paused:
            self.time_line.release()
        else:
            self.time_line.hold()

    def _step(self) -> None:
        self.time_line.hold()
        self.time_line.step()
        self.is_stale = True
