"""Tasks that wait for any event and then check their own condition."""

from __future__ import annotations

import asyncio

from ottla.model import FOREVER


class Waiters:
    """Resumes all waiting tasks together. A cancelled task is removed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def resume(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            finish_waiter(waiter)

    async def wait(self, span: float) -> None:
        """Wait for an event, for `span` seconds at most."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.add(waiter)
        timer = loop.call_later(span, finish_waiter, waiter) if span < FOREVER else None
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if timer is not None:
                timer.cancel()


def finish_waiter(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
