"""The program `ottla`, and `python -m ottla`: Ctrl-C while it still loads is no traceback either.

What it does is the business of `ottla.cli.main`.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    try:
        from ottla.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # as a shell tells of SIGINT; `INTERRUPTED` of the command line may not be there yet


if __name__ == "__main__":
    sys.exit(main())
