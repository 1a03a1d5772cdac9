"""A request from its frame to its response.

    frame ──► header ──► body ──► handler ──► response ──► Selector
                                     └─ later: the call is kept, and answered by an append or a timer

The requests of a connection are handled one at a time, in order. A frame behind a request that waits, or behind a
response that the client does not read, waits as well, except for Produce requests behind Produce requests
(`connection.py`). The table of the listener has the requests (`request_table.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence

from ottla.broker.network_server import request_log
from ottla.broker.network_server.call import Call, DisconnectError, EncodedResponse, Outcome, Response
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.connections import Connections
from ottla.broker.network_server.graceful_shutdown import GracefulShutdown
from ottla.broker.network_server.request_counts import RequestCounts
from ottla.broker.network_server.request_latencies import Latencies
from ottla.broker.network_server.request_times import RequestTimes
from ottla.broker.network_server.throttle import Throttle
from ottla.clock import Clock
from ottla.errors import ProtocolError
from ottla.model import Part, size_of
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.conversation import encode_response
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)


class RequestHandler:
    """Handles the requests of all connections of a node."""

    def __init__(
        self,
        connections: Connections,
        throttle: Throttle,
        shutdown: GracefulShutdown,
        selector: Selector,
        memory: MemoryBudget,
        clock: Clock,
    ) -> None:
        self._connections = connections
        self._throttle = throttle
        self._shutdown = shutdown
        self._selector = selector
        self._memory = memory
        self._clock = clock
        self._timing = request_log.RequestTimer(selector, clock)
        self._corked: list[Hashable] = []
        self.counts: RequestCounts | None = None
        """The counts of requests; None if nothing reads them."""
        self.latencies: Latencies | None = None
        """The latencies of requests; None if nothing reads them."""

    def handle_frame(self, connection: Connection, frame: memoryview, now: float) -> None:
        """Handle a frame, or queue it behind those before it."""
        connection.last_active = now
        if self.counts is not None:
            self.counts.record(frame)
        # One request at a time: a response must not overtake another one. Not reading on bounds the memory that a
        # client's requests can use.
        if connection.pending or not self._can_handle_next(connection, frame):
            if not connection.pending:
                self._selector.mute(connection.channel_id)
            connection.pending.append((frame, now))
        else:
            self.handle(connection, frame, now, now)

    def handle_sent(self, connection: Connection, now: float) -> None:
        """Handle the frames that waited until a response was sent."""
        connection.last_active = now
        if connection.is_unlogged and not self._selector.queued_bytes(connection.channel_id):
            connection.write_log_line(now)
        if connection.pending:
            self.handle_next(connection, now)

    def _can_handle_next(self, connection: Connection, frame: memoryview) -> bool:
        if self._selector.queued_bytes(connection.channel_id):
            return False
        return connection.call is None or (
            connection.has_fast_permission(frame)
            and not connection.door.table.has_quotas
            and not request_log.is_enabled()
        )

    def handle_next(self, connection: Connection, now: float) -> None:
        """Handle the frames that waited behind a response, until one of them has to wait."""
        while connection.pending and self._can_handle_next(connection, connection.pending[0][0]):
            frame, arrived = connection.pending.popleft()
            self.handle(connection, frame, now, arrived)
        if not connection.pending and not self._shutdown.has_started:
            self._selector.unmute(connection.channel_id)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """Handle a request. Its response may be sent later."""
        door = connection.door
        if connection.login is not None and not door.gate.is_authenticated(
            connection, frame, now, self._connections.disconnect
        ):
            return
        try:
            if door.table.answer_directly(connection, frame, now, arrived):
                return
            call, work = door.table.begin(self, connection, frame, now)
        except ProtocolError as error:
            self._close_with_error(connection, frame, str(error))
        except (
            Exception
        ):  # for instance if an upgrade replaced the files of a running broker, and new code does not fit
            log.exception(
                "a request from %s cannot be handled; restart the broker if its program files were changed", connection
            )
            self._close_with_error(connection, frame, "its request failed, as logged above")
        else:
            call.arrived = arrived
            self.execute(call, work)

    def _close_with_error(self, connection: Connection, frame: memoryview, why: str) -> None:
        self._memory.handed_out -= len(frame)
        self._connections.disconnect(connection, why)

    def execute(self, call: Call, work: Callable[[], Response]) -> None:
        """Do work for a call and respond, unless the response is sent later.

        A failure closes this connection only.
        """
        connection = call.connection
        connection.begin(call)
        parts: Sequence[Part] = ()
        entry = self._timing.begin(call) if request_log.is_enabled() else None
        work = connection.door.table.count_use(call, work)
        try:
            response = work()
            if response is Outcome.LATER:
                return None if entry is None else entry.pause(self._clock.monotonic())
            if isinstance(response, EncodedResponse):
                parts = response.parts
            elif not isinstance(response, Outcome):
                parts = self._encode(call, response)
        except DisconnectError as error:
            self._connections.disconnect(connection, str(error))
            return
        except Exception:
            log.exception("%s from %s failed", APIS[call.header.api_key].name, connection)
            self._connections.disconnect(connection, "its request failed, as logged above")
            return
        self._memory.handed_out -= call.size
        if self.latencies is not None:
            self.latencies.record(call.header.api_key, self._clock.monotonic() - call.arrived)
        if entry is not None:
            entry.record_response(response, size_of(parts), self._clock.monotonic())
        if connection.call is call:
            self._send_answer(call, parts)
        else:
            call.parts = parts
        if entry is not None or call.pause_ms:
            self._handle_answered(call, entry)

    def _encode(self, call: Call, response: Message) -> Sequence[Part]:
        """Count the errors of a response, and encode it."""
        if self.counts is not None:
            self.counts.record_errors(call.header.api_key, response)
        return encode_response(response, call.response_version, call.header.correlation_id)

    def _send_answer(self, call: Call, parts: Sequence[Part]) -> None:
        """Send the response that is due, and those that waited for it."""
        connection = call.connection
        connection.call = None
        if parts:
            self._selector.send(connection.channel_id, parts)
            self._finish_call(call)
        if connection.behind:
            for more in connection.pop_responses():
                self._selector.send(connection.channel_id, more)

    def _handle_answered(self, call: Call, entry: RequestTimes | None) -> None:
        """Log a request and pause its connection; most requests need neither."""
        if entry is not None:
            slow_ms = call.connection.door.table.slow_request_ms
            self._timing.note(call, APIS[call.header.api_key].name, entry, slow_ms)
        if call.pause_ms and call.connection.call is None:
            self._throttle.pause(call, self)

    def queue_response(self, connection: Connection) -> None:
        """Remember connections that were answered while the node closes: they get time to read the response."""
        if self._shutdown.has_started:
            self._shutdown.answered_last.add(connection.channel_id)

    def _finish_call(self, call: Call) -> None:
        self.queue_response(call.connection)
        if call.header.api_key == SaslAuthenticateRequest.KEY:
            call.connection.door.gate.after_step(call.connection)

    def resume(self, call: Call, work: Callable[[], Response]) -> None:
        """Continue a call that has waited, unless its client has disconnected; then handle the frames behind it."""
        connection = call.connection
        if connection.is_in_flight(call):
            if connection.behind:  # their responses may be sent together with this one
                self._selector.cork(connection.channel_id)
                self._corked.append(connection.channel_id)
            self.execute(call, work)
            if connection.pending:
                self.handle_next(connection, self._clock.monotonic())

    def keep_channel(self, channel_id: Hashable) -> None:
        """Uncork a connection at the end of this turn of the loop."""
        self._corked.append(channel_id)

    def flush_channels(self) -> None:
        """Send the responses that were delayed to be sent together with later ones."""
        while self._corked:
            self._selector.uncork(self._corked.pop())
