"""Ctrl-C and SIGTERM in commands that run pipelines."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SignalHandling:
    """The end of a command by a signal. Further signals have no effect, so that they cannot interrupt the shutdown."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._is_received = False

    def stop_with(self, stop: Callable[[], None]) -> None:
        """Make both signals call `stop`. Before, SIGTERM ended the process and Ctrl-C raised KeyboardInterrupt."""
        self._stop = stop
        signal.signal(signal.SIGTERM, self._handle_signal)

    def _handle_signal(self, number: int, frame: object) -> None:
        was_received, self._is_received = self._is_received, True
        if self._stop is not None:
            self._stop()
        elif not was_received:
            raise KeyboardInterrupt

    def restore(self) -> None:
        """Restore the signal handlers. If a signal ended the command, Ctrl-C is ignored until the process ends."""
        if self._is_received:
            self._before[signal.SIGINT] = signal.SIG_IGN
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals() -> Iterator[SignalHandling]:
    """Make Ctrl-C and SIGTERM end the command in order."""
    signals = SignalHandling()
    signal.signal(signal.SIGINT, signals._handle_signal)
    try:
        yield signals
    finally:
        signals.restore()
