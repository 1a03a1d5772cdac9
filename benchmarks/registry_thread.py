"""Serve a schema registry from a thread of this process, for benchmarks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings


@contextmanager
def served_registry(servers: str) -> Iterator[str]:
    """Yield the address of a registry on a broker."""
    server = RegistryServer(RegistrySettings({"bootstrap.servers": servers}, port=0))
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(lambda _: ready.set(),))
    thread.start()
    try:
        if not ready.wait(30):
            raise RuntimeError("the registry did not start")
        yield server.url
    finally:
        server.stop()
        thread.join()
