"""The moment by which something must be done, and how long that was at the start, for the error that names it."""

from __future__ import annotations

from typing import NamedTuple


class Deadline(NamedTuple):
    """A moment on the monotonic clock."""

    at: float
    span: float
    """Seconds from the start to the deadline."""

    @classmethod
    def after(cls, span: float, now: float) -> Deadline:
        """`span` seconds from now."""
        return cls(now + span, span)


class ClosingDeadline:
    """The moment by which all must be over; it comes sooner when somebody is in a hurry."""

    def __init__(self, at: float) -> None:
        self.at = at

    def hurry(self, at: float) -> None:
        """Be over by then at the latest."""
        self.at = min(self.at, at)
