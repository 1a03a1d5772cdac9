"""The console of one broker, in a process beside it: `ottla broker --console` begins it.

The broker's process hands over the listener, tells on standard input where the broker is once that is ready, and holds
the pipe for as long as it lives: however it ends, this ends with it.
"""

from __future__ import annotations

import json
import socket
import sys
from threading import Thread
from typing import Any

from ottla.console.garbage import spare_the_collector
from ottla.console.server import Console


def main() -> None:
    """Wait for a line with `settings` and `trace`, serve, and end with the pipe."""
    host, descriptor = sys.argv[1:]
    line = sys.stdin.readline()
    if not line:
        return  # the broker did not become ready
    given: dict[str, Any] = json.loads(line)
    console = Console(given["settings"], host, trace=given["trace"], listener=socket.socket(fileno=int(descriptor)))
    spare_the_collector()
    console.run(begin)


def begin(console: Console) -> None:
    print(f"ready {console.url}", flush=True)
    Thread(target=end_with_the_broker, args=(console,), name="ottla-console-end", daemon=True).start()


def end_with_the_broker(console: Console) -> None:
    sys.stdin.read()
    console.stop()


if __name__ == "__main__":
    main()
