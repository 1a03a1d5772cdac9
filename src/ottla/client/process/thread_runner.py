"""Makes the calls of a blocking processor in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ottla.client.process.calls import Calls, perform_calls


class ThreadRunner:
    """Threads that start with the first concurrent calls."""

    def __init__(self, concurrency: int) -> None:
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="ottla-process")

    def pause(self, seconds: float) -> bool:
        """Wait, and return True; return False as soon as the processor stops."""
        return not self._stopping.wait(seconds)

    def run_all(self, tasks: Sequence[Calls[None]]) -> None:
        """Perform all tasks."""
        for done in [self._threads.submit(perform_calls, task) for task in tasks]:
            done.result()

    def stop(self) -> None:
        """End all pauses. May be called from any thread or a signal handler."""
        self._stopping.set()

    def close(self) -> None:
        """End the threads, which have no calls left."""
        self._threads.shutdown()
