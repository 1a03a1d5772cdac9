"""`python -m examples.flights` runs the demo, and ends all it has started when it is interrupted."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """Leave by the way of Ctrl-C, once: what ends is not interrupted while it ends."""
    for interrupt in INTERRUPTS:
        signal.signal(interrupt, signal.SIG_IGN)
    raise KeyboardInterrupt


def stopping() -> bool:
    """Whether `stop` was called."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def main() -> int:
    for interrupt in INTERRUPTS:
        signal.signal(interrupt, stop)
    try:
        from examples.flights.demo import demo  # takes a second, in which somebody may press Ctrl-C

        return demo()
    except BaseException:
        if not stopping():  # asked so, because a library that is being loaded makes an interrupt an error of its own
            raise
        exec(
            ""
        )  # CPython ends by the signal, whatever is returned, if that came within an `exec` such as `namedtuple`'s; the next one forgets it
        print("stopped; the broker and Spark have ended too")
        return 130


if __name__ == "__main__":
    sys.exit(main())
