"""Makes clients wait that use more than they may: told for how long, and not heard meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable
from functools import partial
from typing import Protocol

from ottla.broker.quota_manager import QuotaManager
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.model import size_of
from ottla.network.selector import Selector
from ottla.protocol.conversation import encode_response
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS = 1.0
"""How long a connection is held that is going to be closed for coming too soon; it takes a descriptor meanwhile."""
Work = Callable[[], Message | Outcome]


class Goes(Protocol):
    """Who goes on with a connection, and with a call that was kept."""

    def resume(self, call: Call, work: Work) -> None: ...

    def go_on(self, connection: Connection, now: float) -> None: ...


class Throttle:
    def __init__(self, selector: Selector, timers: Timers, clock: Clock, connections: Container[Hashable]) -> None:
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._connections = connections

    def counted(self, quotas: QuotaManager, call: Call, work: Work) -> Work:
        """The same work, on the time of the client; its answer tells how long to be quiet, if that is due."""

        def counted() -> Message | Outcome:
            began = self._clock.monotonic()
            response = work()
            now = self._clock.monotonic()
            quotas.spend(call, now - began, now)
            if response is not Outcome.LATER:
                call.pause_ms = quotas.charge(call, partial(size_of_answer, call, response), now)
                if call.pause_ms and not isinstance(response, Outcome) and hasattr(response, "throttle_time_ms"):
                    response.throttle_time_ms = call.pause_ms
            return response

        return counted

    def pause(self, call: Call, handler: Goes) -> None:
        """Hear nothing of a client for a while; its answer it has."""
        connection = call.connection
        connection.call = pause = Call(handler, connection, call.header, call.received)
        self._selector.mute(connection.channel_id)
        self._timers.at(self._clock.monotonic() + call.pause_ms / 1000, lambda: self._end(connection, pause, handler))

    def welcome(self, connection: Connection, delay_ms: float, leave: Callable[[Connection], None]) -> None:
        """Close a connection that came too soon after others, but not at once, or its client would be back at once."""
        if delay_ms:
            self._selector.mute(connection.channel_id)
            seconds = min(delay_ms / 1000, LONGEST_HOLD_SECONDS)
            self._timers.at(self._clock.monotonic() + seconds, lambda: self._send_away(connection, leave))

    def _end(self, connection: Connection, pause: Call, handler: Goes) -> None:
        if connection.call is pause and connection.channel_id in self._connections:
            connection.call = None
            self._selector.unmute(connection.channel_id)
            if connection.pending:
                handler.go_on(connection, self._clock.monotonic())

    def _send_away(self, connection: Connection, leave: Callable[[Connection], None]) -> None:
        if connection.channel_id in self._connections:
            log.info("closing the connection from %s: its address connects more often than it may", connection)
            leave(connection)


def size_of_answer(call: Call, response: Message | Outcome) -> int:
    """Bytes that go back to the client; encodes the answer once more."""
    if isinstance(response, Outcome):
        return 0
    return size_of(encode_response(response, call.response_version, call.header.correlation_id))
