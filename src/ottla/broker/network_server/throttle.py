"""Throttle clients above their quotas: their response has the throttle time, and their connection is muted for that time (KIP-219)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable
from functools import partial
from typing import Protocol

from ottla.broker.event_loop.timers import Timers
from ottla.broker.network_server.call import Call, EncodedResponse, Outcome, Response
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.quota_manager import QuotaManager
from ottla.clock import Clock
from ottla.model import size_of
from ottla.network.selector import Selector
from ottla.protocol.conversation import encode_response

log = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS = 1.0
"""The maximum delay before a connection is closed for exceeding its rate; it uses a descriptor meanwhile."""
Work = Callable[[], Response]


class RequestResumer(Protocol):
    """Does the work of calls, continues a connection, and calls that wait."""

    def execute(self, call: Call, work: Work) -> None: ...

    def resume(self, call: Call, work: Work) -> None: ...

    def handle_next(self, connection: Connection, now: float) -> None: ...


class Throttle:
    def __init__(self, selector: Selector, timers: Timers, clock: Clock, connections: Container[Hashable]) -> None:
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._connections = connections

    def count_usage(self, quotas: QuotaManager, call: Call, work: Work) -> Work:
        """Return the same work, charged to the client's quotas. Its response has the throttle time."""

        def counted() -> Response:
            began = self._clock.monotonic()
            response = work()
            now = self._clock.monotonic()
            quotas.charge_time(call, now - began, now)
            if response is not Outcome.LATER:
                call.pause_ms = quotas.charge_bytes(call, partial(find_response_size, call, response), now)
                if call.pause_ms and isinstance(response, EncodedResponse):
                    response.set_throttle_time(call.pause_ms)
                elif call.pause_ms and not isinstance(response, Outcome) and hasattr(response, "throttle_time_ms"):
                    response.throttle_time_ms = call.pause_ms
            return response

        return counted

    def pause(self, call: Call, handler: RequestResumer) -> None:
        """Mute the connection of a client for its throttle time, after its response."""
        connection = call.connection
        connection.call = pause = Call(handler, connection, call.header, call.received)
        self._selector.mute(connection.channel_id)
        self._timers.schedule(
            self._clock.monotonic() + call.pause_ms / 1000, lambda: self._end_pause(connection, pause, handler)
        )

    def delay_connection(self, connection: Connection, delay_ms: float, leave: Callable[[Connection], None]) -> None:
        """Close a connection that exceeds its rate, after a delay, so that its client does not reconnect at once."""
        if delay_ms:
            self._selector.mute(connection.channel_id)
            seconds = min(delay_ms / 1000, LONGEST_HOLD_SECONDS)
            self._timers.schedule(self._clock.monotonic() + seconds, lambda: self._reject_connection(connection, leave))

    def _end_pause(self, connection: Connection, pause: Call, handler: RequestResumer) -> None:
        if connection.call is pause and connection.channel_id in self._connections:
            connection.call = None
            self._selector.unmute(connection.channel_id)
            if connection.pending:
                handler.handle_next(connection, self._clock.monotonic())

    def _reject_connection(self, connection: Connection, leave: Callable[[Connection], None]) -> None:
        if connection.channel_id in self._connections:
            log.info("closing the connection from %s: its address exceeds its connection rate quota", connection)
            leave(connection)


def find_response_size(call: Call, response: Response) -> int:
    """Return the size of the response, which is encoded once more for this, if it is a message."""
    if isinstance(response, Outcome):
        return 0
    if isinstance(response, EncodedResponse):
        return size_of(response.parts)
    return size_of(encode_response(response, call.response_version, call.header.correlation_id))
