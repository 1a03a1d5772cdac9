"""Ctrl-C while Spark's Java is starting: who is interrupted then knows of no process that he could end, and it would live on for good.

So it is held back until Java listens, which ends with the program that it belongs to. A second one counts at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_held_back() -> Iterator[None]:
    """KeyboardInterrupt at the end of what is done in here, if there was one meanwhile; nothing is held back from a handler of the user's."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard: list[int] = []

    def hear(number: int, _: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hear:  # Spark sets its own
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt
