"""The program `ottla`, and `python -m ottla`: Ctrl-C while it still loads, or while Python ends, is no traceback either.

What it does is the business of `ottla.cli.main`.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    try:
        from ottla.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # as a shell tells of SIGINT; `INTERRUPTED` of the command line may not be there yet
    finally:
        end_at_once_from_now_on()


def end_at_once_from_now_on() -> None:
    """The command is over: who presses Ctrl-C now has waited for what is left, such as the end of a Java, and need not."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
