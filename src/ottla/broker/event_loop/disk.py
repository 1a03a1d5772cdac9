"""Threads for calls that block on the disk, so that the event loop does not.

Results are delivered in the thread of the loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

log = logging.getLogger(__name__)

THREADS = 4
"""A disk forces several files at once in little more time than one."""
Work = Callable[[], None]
Done = Callable[[BaseException | None], None]


class Disk:
    """Threads that start with the first work."""

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], None], threads: int = THREADS, name: str = "disk"
    ) -> None:
        """`call_soon` hands a callback to the loop and may be called from any thread."""
        self._call_soon = call_soon
        self._limit = threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._queue: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` in a thread, then `done(error or None)` in the loop."""
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=self._run, name=f"ottla-{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put((work, done))

    @property
    def busy(self) -> bool:
        """True if `close` may have work to wait for."""
        return bool(self._threads)

    def close(self) -> None:
        """Wait for all submitted work. Its results are then queued in the loop."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # every error is passed to `done`
                error = raised
            self._call_soon(lambda done=done, error=error: done(error))  # type: ignore[misc]
