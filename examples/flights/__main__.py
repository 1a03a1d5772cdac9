"""`python -m examples.flights` runs the demo, and stops all its processes when it is interrupted."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """Raise KeyboardInterrupt, once. Later signals are ignored, so that they do not interrupt the cleanup."""
    for interrupt in INTERRUPTS:
        signal.signal(interrupt, signal.SIG_IGN)
    raise KeyboardInterrupt


def stopping() -> bool:
    """True if `stop` was called."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def main() -> int:
    for interrupt in INTERRUPTS:
        signal.signal(interrupt, stop)
    try:
        from examples.flights.demo import demo  # takes a second, and the user may press Ctrl-C meanwhile

        return demo()
    except BaseException:
        if (
            not stopping()
        ):  # not by exception type: a library that is being loaded may raise its own error for the interrupt
            raise
        exec(
            ""
        )  # CPython exits by the signal, whatever is returned, if it arrived within an `exec` such as `namedtuple`'s; the next `exec` resets this
        print("stopped; the broker and Spark have ended too")
        return 130


if __name__ == "__main__":
    sys.exit(main())
