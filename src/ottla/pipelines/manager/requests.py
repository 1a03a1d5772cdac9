"""What is asked of a running manager from outside: by other threads, which wait for the answer.

The manager's thread alone touches Spark's queries; it looks for requests between two looks at them.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Requests:
    """Calls that wait for the manager's thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._closed = False

    def ask(self, call: Callable[[], Any]) -> Future[Any]:
        """Have the manager's thread call it; from any other."""
        future: Future[Any] = Future()
        self._waiting.put((call, future))
        if self._closed:
            self.close()
        return future

    def serve(self) -> None:
        """Call what waits; from the manager's thread."""
        while not self._waiting.empty():
            call, future = self._waiting.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)

    def close(self) -> None:
        """Nobody will answer any more."""
        self._closed = True
        while True:
            try:
                _, future = self._waiting.get_nowait()
            except queue.Empty:
                return
            future.cancel()
