"""The registry of one broker in a child process, started by `ottla broker --registry`.

The broker passes the listening socket, and later its address on standard input. It keeps this pipe open while it lives,
so that the registry ends with it in all cases.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from threading import Thread
from typing import Any

from ottla.client.process.stop_signals import stop_on_signals
from ottla.log_format import EscapingFormatter
from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings


def main() -> None:
    """Wait for a line with `settings`, serve, and stop when the pipe is closed."""
    host, descriptor = sys.argv[1:]
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler])
    line = sys.stdin.readline()
    if not line:
        return  # the broker failed to start
    given: dict[str, Any] = json.loads(line)
    server = RegistryServer(RegistrySettings(given["settings"], host), socket.socket(fileno=int(descriptor)))
    Thread(target=end_with_broker, args=(server,), name="ottla-registry-end", daemon=True).start()
    with stop_on_signals(server.stop):
        server.run(print_ready)


def print_ready(server: RegistryServer) -> None:
    print(f"ready {server.url}", flush=True)


def end_with_broker(server: RegistryServer) -> None:
    """Stop when the broker has ended."""
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
