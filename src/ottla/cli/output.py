"""Standard output while records are printed: how long to wait for more, and whether anybody reads it."""

from __future__ import annotations

import select
import time

TURN_SECONDS = 0.2
"""How long to wait for records before looking whether anybody still reads our output."""


def patience_of(timeout: float | None, last_heard: float) -> float:
    """Seconds to wait for records now; below 0 when `timeout` has passed since the last."""
    return TURN_SECONDS if timeout is None else min(TURN_SECONDS, last_heard + timeout - time.monotonic())


def nobody_reads(fd: int) -> bool:
    """Whether `fd` is a pipe that was closed at the other end; known without writing to it."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(flags & (select.POLLERR | select.POLLNVAL) for _, flags in poll.poll(0))
