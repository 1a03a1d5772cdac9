"""Lets a client's network work inside an event loop.

The loop watches the one descriptor of the client's selector; what can be done there is done at once, also while no task
waits for it. A task that waits is resumed when something has happened or its time is up, and looks for itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeVar

from ottla.aio.drive import drive
from ottla.aio.waiters import Waiters
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, OttlaError
from ottla.model import FOREVER

T = TypeVar("T")
BROKEN = "an exception in the event loop ended the connections of this consumer; the next call makes them again"
LOG = logging.getLogger(__name__)


class Pump:
    """The event loop's hold on one client."""

    def __init__(self, client: ConsumerNetworkClient) -> None:
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1
        self.waiters = Waiters()
        self._timer: asyncio.TimerHandle | None = None
        client.on_close = self._detach

    async def run(self, steps: Steps[T], *, wakeable: bool = True) -> T:
        """Do what waits for the network, suspended meanwhile; what happens to the task happens where the steps wait."""
        self._attach()
        return await drive(steps, lambda span: self._wait(span, wakeable))

    def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop or self._client.client.closed:
            return
        if self._loop is not None:
            raise IllegalStateError("this client was begun in another event loop; make a new one in this one")
        self._loop = loop
        self._fd = self._client.client.fileno()
        loop.add_reader(self._fd, self._work)

    def _detach(self) -> None:
        """The client is about to close its descriptor."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._stop_timer()
        self.waiters.resume()

    async def _wait(self, span: float, wakeable: bool) -> None:
        """What `ConsumerNetworkClient.poll` is to a caller that blocks."""
        client = self._client
        if client.client.closed:
            raise IllegalStateError("the client was closed while this waited for it")
        self._check_whole()
        happened = client.poll(0.0, wakeable=wakeable)
        if happened:
            self.waiters.resume()  # what came may be another's
        span = min(span, client.wait_span())
        if happened or span <= 0:
            await asyncio.sleep(0)
            return
        await self.waiters.wait(span)
        self._check_whole()
        if wakeable:
            client.maybe_trigger_wakeup()

    def _check_whole(self) -> None:
        """Raise if an exception has ended work on the network: what this task waits for will not come."""
        if self._client.is_broken:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, BROKEN)

    def _work(self) -> None:
        """The descriptor is ready, or a deadline of the client's own has come."""
        if self._client.client.closed:
            return
        try:
            self._client.poll(0.0, wakeable=False)
        except Exception as error:  # those who wait meet it again, for it stays
            self._client.is_broken |= not isinstance(error, OttlaError)
            LOG.debug("polling the network: %s", error)
        except BaseException:
            self._client.is_broken = True
            self.waiters.resume()
            raise
        self.waiters.resume()
        self._set_timer(self._client.wait_span())

    def _set_timer(self, span: float) -> None:
        """Work again after `span` seconds, if nothing happens before: requests time out also while no task waits."""
        self._stop_timer()
        if span < FOREVER and self._loop is not None:
            self._timer = self._loop.call_later(span, self._work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
