"""A broker in the main thread of a process of its own, until it is told to end."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from types import FrameType

from ottla.broker.config import BrokerConfig
from ottla.broker.server import Server
from ottla.compiled import warn_if_uncompiled


def serve(config: BrokerConfig, ready: Callable[[Server], None]) -> None:
    """Start, call `ready`, and serve until SIGTERM or SIGINT; OttlaError says why it cannot start.

    A second signal changes nothing: what ends is not interrupted while it ends.
    """
    allow_many_files()
    server = Server(config)
    warn_if_uncompiled()

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    ready(server)
    server.run()


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets us: each partition and each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS has a limit below the hard one
            pass
