"""Ctrl-C in a program with Spark: its jobs are cancelled. pyspark sees to that only where the main thread starts Spark."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cancel_at_interrupt(session: SparkSession) -> None:
    """Cancel the session's jobs before KeyboardInterrupt is raised, where the program has no handler of its own."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    context = session.sparkContext

    def cancel(number: int, frame: object) -> NoReturn:
        try:
            context.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, cancel)
