"""The moment by which something must be done, and how long that was at the start, for the error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.clock import Clock

INTERRUPTED_SECONDS = 0.8
"""How long closing may take after Ctrl-C."""


class Deadline(NamedTuple):
    """A moment on the monotonic clock."""

    at: float
    span: float
    """Seconds from the start to the deadline."""

    @classmethod
    def after(cls, span: float, now: float) -> Deadline:
        return cls(now + span, span)


class ClosingDeadline:
    """The moment by which all must be over; it comes sooner when somebody is in a hurry.

    `clock` tells the moment; without one nobody interrupts.
    """

    def __init__(self, at: float, clock: Clock | None = None) -> None:
        self.at = at
        self._clock = clock

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Hurry when what is done in here is interrupted: wherever it is then, waiting or at work."""
        try:
            yield
        except BaseException as error:
            if self._clock is not None and not isinstance(error, Exception):
                self.hurry(self._clock.monotonic() + INTERRUPTED_SECONDS)
            raise

    def hurry(self, at: float) -> None:
        """Be over by then at the latest."""
        self.at = min(self.at, at)
