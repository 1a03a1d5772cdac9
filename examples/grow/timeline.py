"""A series of measurements during the load: acknowledged records, and the leader of each partition."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

SPAN_SECONDS = 0.5
WIDTH = 40


class Moment(NamedTuple):
    at: float
    """Seconds since the start."""
    rate: float
    """Acknowledged records per second."""
    leaders: str
    """A letter for the leader of each partition."""


class Timeline:
    """Measures twice a second, in a thread of its own."""

    def __init__(self, acknowledged: Callable[[], int], leaders: Callable[[], str]) -> None:
        self.moments: list[Moment] = []
        self.steps: list[tuple[float, str]] = []
        self._acknowledged = acknowledged
        self._leaders = leaders
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="timeline")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def tell(self, sentence: str) -> None:
        """Record and print a step of the story that happens now."""
        at = time.monotonic() - self._begun
        self.steps.append((at, sentence))
        print(f"{at:6.1f} s  {sentence}", flush=True)

    def _run(self) -> None:
        before, then = self._acknowledged(), time.monotonic()
        while not self._over.wait(SPAN_SECONDS):
            count, now = self._acknowledged(), time.monotonic()
            self.moments.append(Moment(now - self._begun, (count - before) / (now - then), self._leaders()))
            before, then = count, now

    def drawing(self) -> str:
        """Return one line per measurement, with a bar for the acknowledged records.

        Steps are printed at their times.
        """
        most = max((each.rate for each in self.moments), default=1.0) or 1.0
        lines, steps = [], list(self.steps)
        for moment in self.moments:
            while steps and steps[0][0] < moment.at:
                lines.append(f"{'':10}── {steps.pop(0)[1]}")
            bar = "█" * round(moment.rate / most * WIDTH)
            lines.append(f"{moment.at:6.1f} s  {moment.leaders}  {bar} {moment.rate:,.0f}/s")
        return "\n".join(lines)
