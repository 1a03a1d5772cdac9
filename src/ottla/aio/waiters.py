"""Tasks that wait until something has happened, and then look for themselves."""

from __future__ import annotations

import asyncio

from ottla.model import FOREVER


class Waiters:
    """Resumed all together; one that is cancelled is simply gone."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def resume(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            finish(waiter)

    async def wait(self, span: float) -> None:
        """Until something happens, for `span` seconds at most."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.add(waiter)
        timer = loop.call_later(span, finish, waiter) if span < FOREVER else None
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if timer is not None:
                timer.cancel()


def finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
