"""The console of one broker in a child process, started by `ottla broker --console`.

The broker passes the listening socket, and later its address on standard input. It keeps this pipe open while it lives,
so that the console ends with it in all cases.
"""

from __future__ import annotations

import json
import socket
import sys
from threading import Thread
from typing import TYPE_CHECKING, Any

from ottla.console.garbage import configure_collector
from ottla.console.server import Console
from ottla.errors import MissingExtraError

if TYPE_CHECKING:
    from ottla.console.schema_registry import ConsoleRegistry


def main() -> None:
    """Wait for a line with `settings`, `trace` and `registry`, serve, and stop when the pipe is closed."""
    host, descriptor = sys.argv[1:]
    line = sys.stdin.readline()
    if not line:
        return  # the broker failed to start
    given: dict[str, Any] = json.loads(line)
    listener, registry = socket.socket(fileno=int(descriptor)), open_registry(given["registry"])
    console = Console(given["settings"], host, trace=given["trace"], listener=listener, registry=registry)
    configure_collector()
    console.run(start_offsets)


def open_registry(url: str | None) -> ConsoleRegistry | None:
    """Return the registry at an address. Without the packages for it, print a warning and return None."""
    if url is None:
        return None
    try:
        from ottla.console.schema_registry import LIMITS, ConsoleRegistry
        from ottla.schemas.clients import SchemaRegistryClient
    except MissingExtraError as error:
        print(f"ottla broker: the console shows no schemas: {error}", file=sys.stderr, flush=True)
        return None
    return ConsoleRegistry(SchemaRegistryClient({**LIMITS, "url": url}))


def start_offsets(console: Console) -> None:
    print(f"ready {console.url}", flush=True)
    Thread(target=end_with_the_broker, args=(console,), name="ottla-console-end", daemon=True).start()


def end_with_the_broker(console: Console) -> None:
    sys.stdin.read()
    console.stop()


if __name__ == "__main__":
    main()
