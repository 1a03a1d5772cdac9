"""The program `ottla`, and `python -m ottla`; Ctrl-C during imports or shutdown prints no traceback.

The command line is implemented in `ottla.cli.main`.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Import the command line and run it; return the exit status."""
    try:
        from ottla.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # the shells' status for SIGINT; `INTERRUPTED` of the command line may not be imported yet
    finally:
        end_at_once_from_now_on()


def end_at_once_from_now_on() -> None:
    """Make Ctrl-C end the process at once, so that a slow shutdown, such as that of a Java process, can be skipped."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
