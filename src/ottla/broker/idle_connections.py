"""Connections that have been silent for too long are closed (`connections.max.idle.ms`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping

from ottla.broker.requests.connection import Connection
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock

log = logging.getLogger(__name__)


def watch_idle(
    limit: float,
    clock: Clock,
    timers: Timers,
    connections: Mapping[Hashable, Connection],
    leave: Callable[[Connection], None],
) -> None:
    """Look after them from time to time, if there is a limit; in seconds, negative for none."""
    if limit < 0:
        return

    def look() -> None:
        now = clock.monotonic()
        for connection in list(connections.values()):
            if connection.call is None and now - connection.last_active > limit:
                log.info("closing the connection from %s: idle for %.0f s", connection, now - connection.last_active)
                leave(connection)

    repeat(timers, clock, "connections.max.idle.ms", look, lambda: max(limit / 10, 0.1), first_seconds=0)
