"""The producer's sender without a thread: it works in turns of the event loop.

A turn sends what is due, handles received responses, and never waits. The event loop runs one when the descriptor of
the selector is ready, when a record or a caller requests it, and when a deadline is reached.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakMethod

from ottla.aio.drive import run_steps
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
    """Sends batches in turns of the event loop, until it is closed."""

    loop: asyncio.AbstractEventLoop | None = None
    """The event loop it is attached to."""
    _timer: asyncio.TimerHandle | None = None
    _is_turn_scheduled = False
    _fd = -1

    def start(self) -> None:
        """Start the sender. The first call within an event loop attaches the sender to it.

        Records left at the end of the loop are sent at exit.
        """
        self.waiters = Waiters()
        EXITS.add(self._finish_at_exit)

    def attach(self) -> None:
        """Attach to the running event loop. Raises IllegalStateError if attached to another one."""
        loop = asyncio.get_running_loop()
        if self.loop is loop or self._ended:
            return
        if self.loop is not None:
            raise IllegalStateError("this producer belongs to another event loop; create a new one in this loop")
        self.loop = loop
        THREAD.completion_tests = (*THREAD.completion_tests, WeakMethod(self.is_completing))
        self._fd = self._client.fileno()
        loop.add_reader(self._fd, self._run_turn)

    def wakeup(self) -> None:
        if self.loop is not None and not self._is_turn_scheduled:
            self.loop.call_soon(self._run_turn)
            self._is_turn_scheduled = (
                True  # last: an exception of a signal handler before it causes at most one extra turn
            )

    def wakeup_for_metadata(self) -> None:
        self.wakeup()

    async def await_steps(self, steps: Steps[T]) -> T:
        """Run the steps in the current task; the asyncio counterpart of `run`."""
        self.attach()
        return await run_steps(steps, self._wait)

    async def _wait(self, span: float) -> None:
        """Wait until a turn has ended."""
        await (self.waiters.wait(span) if span > 0 else asyncio.sleep(0))

    async def _wait_until(self, done: Callable[[], bool], deadline: float) -> None:
        while not done() and (left := deadline - self._client.clock.monotonic()) > 0:
            await self.waiters.wait(left)

    async def finish(self, timeout: float) -> None:
        """Send what is queued and close. Records without a result after `timeout` seconds fail."""
        deadline = self._client.clock.monotonic() + timeout
        self.initiate_close()
        self.wakeup()
        try:
            await self._wait_until(lambda: not self._accumulator.incomplete(), deadline)
            self.wakeup()
            await self._wait_until(self._is_out_of_transactions, deadline)
            self.wakeup()
            await run_steps(self._client.telemetry.terminate(self._client, deadline), self._wait)
        finally:
            self._end()

    def _is_out_of_transactions(self) -> bool:
        manager = self._transactions
        if manager is None or not manager.machine.status.has_open_transaction:
            return True
        with manager.lock:
            manager.machine.abandon_transaction()
        manager.report_changes()
        return False

    def _end(self) -> None:
        self._ended = True
        EXITS.remove(self._finish_at_exit)
        self.batches.fail_remaining()
        self._run_submitted_calls()
        if self.loop is not None and not self._client.closed:
            self.loop.remove_reader(self._fd)
        self._stop_timer()
        self._client.close()
        THREAD.completion_tests = tuple(
            each for each in THREAD.completion_tests if each() not in (None, self.is_completing)
        )
        self.waiters.resume()

    def _run_turn(self) -> None:
        self._is_turn_scheduled = False
        self._stop_timer()
        if self._ended or self._client.closed:
            return
        EXITS.hold()
        try:
            span = self._run_work()
        except Exception:
            LOG.exception("[%s] sender turn failed; it is retried", self._name)
            span = self._config.retry_backoff_ms / 1000  # a repeated error must not keep the loop busy
        finally:
            EXITS.release()
        self.waiters.resume()
        if span < FOREVER and self.loop is not None:
            self._timer = self.loop.call_later(span, self._run_turn)
        raise_exit()

    def _run_work(self) -> float:
        """Do one turn's work. Return the seconds until the next, unless an event requests it earlier."""
        now = self._client.clock.monotonic()
        span = min(self._run_transactions(now), self._send_producer_data(now), self.report_statistics(now))
        happened = self._client.poll(0.0)
        return 0.0 if happened else max(0.0, min(span, self._client.wait_span()))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish_at_exit(self) -> None:
        """Send what the ended event loop has left, blocking like the sender thread."""
        self.loop = None
        if self._ended or self._client.closed:
            return
        self.initiate_close()
        clock = self._client.clock
        deadline = clock.monotonic() + EXIT_TIMEOUT
        try:
            while self._accumulator.incomplete() and (now := clock.monotonic()) < deadline:
                span = min(self._run_transactions(now), self._send_producer_data(now))
                self._client.poll(max(0.0, min(span, deadline - now)))
        finally:
            self._end()
