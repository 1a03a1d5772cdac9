"""Deadlines, with the original timeout for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.clock import Clock

INTERRUPTED_SECONDS = 0.8
"""The time that a close may take after Ctrl-C."""


class Deadline(NamedTuple):
    """A moment on the monotonic clock."""

    at: float
    span: float
    """Seconds from the start to the deadline."""

    @classmethod
    def after(cls, span: float, now: float) -> Deadline:
        return cls(now + span, span)


class ClosingDeadline:
    """The deadline of a close, which an interrupt brings forward.

    `clock` gives the time of an interrupt; without it interrupts have no effect.
    """

    def __init__(self, at: float, clock: Clock | None = None) -> None:
        self.at = at
        self._clock = clock

    @contextmanager
    def shorten_on_interrupt(self) -> Iterator[None]:
        """Bring the deadline forward if an interrupt is raised in this block."""
        try:
            yield
        except BaseException as error:
            if self._clock is not None and not isinstance(error, Exception):
                self.shorten(self._clock.monotonic() + INTERRUPTED_SECONDS)
            raise

    def shorten(self, at: float) -> None:
        """Bring the deadline forward to `at`."""
        self.at = min(self.at, at)
