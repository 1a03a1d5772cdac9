"""What Ctrl-C and SIGTERM do to a command that runs pipelines."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Ending:
    """The end of a command that was asked for from outside, once; asking again strikes nothing, least of all that end."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._is_asked = False

    def by(self, stop: Callable[[], None]) -> None:
        """Have both signals call `stop` from now on; so far SIGTERM ended the process, and Ctrl-C raised KeyboardInterrupt."""
        self._stop = stop
        signal.signal(signal.SIGTERM, self.hear)

    def hear(self, number: int, frame: object) -> None:
        was_asked, self._is_asked = self._is_asked, True
        if self._stop is not None:
            self._stop()
        elif not was_asked:
            raise KeyboardInterrupt

    def over(self) -> None:
        """Give the signals back; where the command ends because of one, Ctrl-C stays without effect to its end."""
        if self._is_asked:
            self._before[signal.SIGINT] = signal.SIG_IGN
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals() -> Iterator[Ending]:
    """Have Ctrl-C and SIGTERM end the command, by what it says once there is something to stop in order."""
    ending = Ending()
    signal.signal(signal.SIGINT, ending.hear)
    try:
        yield ending
    finally:
        ending.over()
