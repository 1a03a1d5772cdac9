"""Work of Java's that Ctrl-C must not strike: a thread of its own does it, and who waits for it is interrupted at once.

Struck while Java starts, pyspark takes the file away in which Java is to say where it listens, and Java stays for good. A call that
is struck ends in tracebacks. Left alone, either comes to its end; Java's own end is that of the program, whose pipe it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
LOOK = 0.2
"""Seconds after which who waits looks up: a signal that comes just before Python falls asleep does not wake it."""


def interruptible(work: Callable[[], T]) -> T:
    """What `work` returns or raises; after a KeyboardInterrupt it goes on, until it is done or the program ends."""
    outcome: Future[T] = Future()
    threading.Thread(target=do, args=(work, outcome), name="ottla-uninterrupted", daemon=True).start()
    while not outcome.done():
        wait([outcome], LOOK)
    return outcome.result()


def do(work: Callable[[], T], outcome: Future[T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)
