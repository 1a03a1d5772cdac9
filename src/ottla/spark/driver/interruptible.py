"""Runs work of Java in a separate thread, so that Ctrl-C interrupts the waiting thread and not the work.

If Java is interrupted while it starts, pyspark deletes the file through which Java reports its port, and Java runs for
ever. An interrupted call ends in tracebacks. Uninterrupted, both complete; Java itself ends with the program, because
it reads the program's pipe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
LOOK = 0.2
"""Seconds between two checks by the waiting thread: a signal just before Python blocks does not wake it."""


def run_interruptibly(work: Callable[[], T]) -> T:
    """Return the result of `work`, or raise its error.

    After a KeyboardInterrupt `work` continues until it is done or the program ends.
    """
    outcome: Future[T] = Future()
    threading.Thread(target=run_work, args=(work, outcome), name="ottla-uninterrupted", daemon=True).start()
    while not outcome.done():
        wait([outcome], LOOK)
    return outcome.result()


def run_work(work: Callable[[], T], outcome: Future[T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)
