"""Stop processors on SIGINT (Ctrl-C) and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
stop_callbacks: list[Callable[[], None]] = []
"""The stop functions; several processors may run in one event loop."""
previous_handlers: dict[signal.Signals, Any] = {}
"""The signal handlers that were replaced."""


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGINT or SIGTERM within the block, and restore the handlers afterwards.

    Only in the main thread; elsewhere without effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop_callbacks.append(stop)  # first: a signal between two lines must not be lost
    try:
        if len(stop_callbacks) == 1:
            previous_handlers.update((number, signal.signal(number, stop_all)) for number in SIGNALS)
        yield
    finally:
        stop_callbacks.remove(stop)
        if not stop_callbacks:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)


def stop_all(number: int, frame: FrameType | None) -> None:
    for stop in stop_callbacks:
        stop()
