"""Ctrl-C and SIGTERM as the wish that a processor end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
stops: list[Callable[[], None]] = []
"""What is called; several processors may run in one event loop."""
before: dict[signal.Signals, Any] = {}
"""The handlers that were there."""


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM mean `stop`, where this is the main thread; afterwards they mean again what they meant."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not stops:
        before.update((number, signal.signal(number, stop_all)) for number in SIGNALS)
    stops.append(stop)
    try:
        yield
    finally:
        stops.remove(stop)
        if not stops:
            for number, handler in before.items():
                signal.signal(number, handler)


def stop_all(number: int, frame: FrameType | None) -> None:
    for stop in stops:
        stop()
