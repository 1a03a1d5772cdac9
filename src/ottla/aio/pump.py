"""Run a client's network work inside an event loop.

The loop watches the one descriptor of the client's selector and handles its events at once, also while no task waits
for them. Waiting tasks are resumed after an event or their timeout, and check their own condition.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeVar

from ottla.aio.drive import run_steps
from ottla.aio.waiters import Waiters
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, OttlaError
from ottla.model import FOREVER

T = TypeVar("T")
BROKEN = "connections closed by an exception in the event loop; the next call reconnects"
LOG = logging.getLogger(__name__)


class Pump:
    """Connects one client to the event loop."""

    def __init__(self, client: ConsumerNetworkClient) -> None:
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1
        self.waiters = Waiters()
        self._timer: asyncio.TimerHandle | None = None
        client.on_close = self._detach

    async def run(self, steps: Steps[T], *, wakeable: bool = True) -> T:
        """Run the steps. While they wait for the network, the task is suspended; a cancellation is thrown into them."""
        self._attach()
        return await run_steps(steps, lambda span: self._wait(span, wakeable))

    def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop or self._client.client.closed:
            return
        if self._loop is not None:
            raise IllegalStateError("this client belongs to another event loop; create a new one in this loop")
        self._loop = loop
        self._fd = self._client.client.fileno()
        loop.add_reader(self._fd, self._poll)

    def _detach(self) -> None:
        """Detach from the loop before the client closes its descriptor."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._stop_timer()
        self.waiters.resume()

    async def _wait(self, span: float, wakeable: bool) -> None:
        """Wait for the network; the asyncio counterpart of `ConsumerNetworkClient.poll`."""
        client = self._client
        if client.client.closed:
            raise IllegalStateError("the client was closed during the call")
        self._raise_if_broken()
        happened = client.poll(0.0, wakeable=wakeable)
        if happened:
            self.waiters.resume()  # the event may concern another task
        span = min(span, client.wait_span())
        if happened or span <= 0:
            await asyncio.sleep(0)
            return
        await self.waiters.wait(span)
        self._raise_if_broken()
        if wakeable:
            client.maybe_trigger_wakeup()

    def _raise_if_broken(self) -> None:
        """Raise an error if an exception has stopped the network work, because the awaited event will not arrive."""
        if self._client.is_broken:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, BROKEN)

    def _poll(self) -> None:
        """Handle a ready descriptor or an expired deadline."""
        if self._client.client.closed:
            return
        try:
            self._client.poll(0.0, wakeable=False)
        except Exception as error:  # the error persists, so the waiting tasks raise it themselves
            self._client.is_broken |= not isinstance(error, OttlaError)
            LOG.debug("network poll failed error=%s", error)
        except BaseException:
            self._client.is_broken = True
            self.waiters.resume()
            raise
        self.waiters.resume()
        self._set_timer(self._client.wait_span())

    def _set_timer(self, span: float) -> None:
        """Poll again after `span` seconds at the latest: requests time out also while no task waits."""
        self._stop_timer()
        if span < FOREVER and self._loop is not None:
            self._timer = self._loop.call_later(span, self._poll)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
