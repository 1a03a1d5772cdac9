"""Requests of other threads to a running manager.

Only the manager's thread uses Spark's queries; it serves requests between two steps.
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

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Queue a call for the manager's thread; called from any other thread."""
        future: Future[Any] = Future()
        self._waiting.put((call, future))
        if self._closed:
            self.close()
        return future

    def serve(self) -> None:
        """Run the queued calls; called from the manager's thread."""
        while not self._waiting.empty():
            call, future = self._waiting.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)

    def close(self) -> None:
        """Cancel all waiting and future calls."""
        self._closed = True
        while True:
            try:
                _, future = self._waiting.get_nowait()
            except queue.Empty:
                return
            future.cancel()
