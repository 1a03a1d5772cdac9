"""The producer's sender without a thread of its own: it works in turns of the event loop.

A turn sends what is due, takes in what has come, and never waits. The loop gives it one when its descriptor is ready,
when a record or a caller asks for it, and when a moment has come at which something is due.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakMethod

from ottla.aio.drive import drive
from ottla.aio.waiters import Waiters
from ottla.client.producer.sender import EXIT_TIMEOUT, Sender
from ottla.client.runtime.exits import EXITS
from ottla.client.runtime.future import THREAD, raise_exit
from ottla.client.runtime.steps import Steps
from ottla.errors import IllegalStateError
from ottla.model import FOREVER

T = TypeVar("T")
LOG = logging.getLogger(__name__)


class LoopSender(Sender):
    """Sends batches in turns, until it is finished."""

    loop: asyncio.AbstractEventLoop | None = None
    """The event loop that it belongs to."""
    _timer: asyncio.TimerHandle | None = None
    _due = False
    _fd = -1

    def start(self) -> None:
        """The first call that has an event loop brings it along; what that leaves is sent at the end of the process."""
        self.waiters = Waiters()
        EXITS.add(self._finish_at_exit)

    def attach(self) -> None:
        """Belong to the running event loop."""
        loop = asyncio.get_running_loop()
        if self.loop is loop or self._ended:
            return
        if self.loop is not None:
            raise IllegalStateError("this producer was begun in another event loop; make a new one in this one")
        self.loop = loop
        THREAD.completes = (*THREAD.completes, WeakMethod(self.completes))
        self._fd = self._client.fileno()
        loop.add_reader(self._fd, self._turn)

    def wakeup(self) -> None:
        """There may be something to do: have a turn soon."""
        if self.loop is not None and not self._due:
            self.loop.call_soon(self._turn)
            self._due = True  # last: an exception of a signal handler costs at most a turn too many

    def wakeup_for_metadata(self) -> None:
        self.wakeup()

    async def await_steps(self, steps: Steps[T]) -> T:
        """What `run` is to a caller that blocks."""
        self.attach()
        return await drive(steps, self._wait)

    async def _wait(self, span: float) -> None:
        """Until a turn has ended."""
        await (self.waiters.wait(span) if span > 0 else asyncio.sleep(0))

    async def _until(self, done: Callable[[], bool], deadline: float) -> None:
        while not done() and (left := deadline - self._client.clock.monotonic()) > 0:
            await self.waiters.wait(left)

    async def finish(self, timeout: float) -> None:
        """Send what is queued and end; what has no outcome after `timeout` seconds fails."""
        deadline = self._client.clock.monotonic() + timeout
        self.initiate_close()
        self.wakeup()
        try:
            await self._until(lambda: not self._accumulator.incomplete(), deadline)
            self.wakeup()
            await self._until(self._is_out_of_transactions, deadline)
            self.wakeup()
            await drive(self._client.telemetry.terminate(self._client, deadline), self._wait)
        finally:
            self._end()

    def _is_out_of_transactions(self) -> bool:
        manager = self._transactions
        if manager is None or not manager.machine.status.has_open_transaction:
            return True
        with manager.lock:
            manager.machine.abandon()
        manager.report()
        return False

    def _end(self) -> None:
        self._ended = True
        EXITS.remove(self._finish_at_exit)
        self.batches.abort()
        self._run_decisions()
        if self.loop is not None and not self._client.closed:
            self.loop.remove_reader(self._fd)
        self._stop_timer()
        self._client.close()
        THREAD.completes = tuple(each for each in THREAD.completes if each() not in (None, self.completes))
        self.waiters.resume()

    def _turn(self) -> None:
        self._due = False
        self._stop_timer()
        if self._ended or self._client.closed:
            return
        EXITS.hold()
        try:
            span = self._work()
        except Exception:
            LOG.exception("[%s] the sender stumbled; it goes on", self._name)
            span = self._config.retry_backoff_ms / 1000  # what went wrong once may go wrong every time
        finally:
            EXITS.release()
        self.waiters.resume()
        if span < FOREVER and self.loop is not None:
            self._timer = self.loop.call_later(span, self._turn)
        raise_exit()

    def _work(self) -> float:
        """Returns the seconds after which to do so again, unless the descriptor or somebody asks for it before."""
        now = self._client.clock.monotonic()
        span = min(self._mind_transactions(now), self._send_producer_data(now), self.tell_statistics(now))
        happened = self._client.poll(0.0)
        return 0.0 if happened else max(0.0, min(span, self._client.wait_span()))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish_at_exit(self) -> None:
        """The event loop has ended: send what it left without it, as a thread would."""
        self.loop = None
        if self._ended or self._client.closed:
            return
        self.initiate_close()
        clock = self._client.clock
        deadline = clock.monotonic() + EXIT_TIMEOUT
        try:
            while self._accumulator.incomplete() and (now := clock.monotonic()) < deadline:
                span = min(self._mind_transactions(now), self._send_producer_data(now))
                self._client.poll(max(0.0, min(span, deadline - now)))
        finally:
            self._end()
