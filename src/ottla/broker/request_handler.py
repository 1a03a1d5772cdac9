"""A request from its frame to its response.

    frame ──► header ──► body ──► handler ──► response ──► Selector
                                     └─ later: the call is kept, and answered by an append or a timer

The requests of a connection are handled one at a time, in order. A frame behind a request that waits, or behind a
response that the client does not read, waits as well, except for Produce requests behind Produce requests
(`requests/connection.py`). Which requests there are, the table of the listener says (`requests/request_table.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence

from ottla.broker.connections import Connections
from ottla.broker.farewell import Farewell
from ottla.broker.requests import request_log
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.latencies import Latencies
from ottla.broker.requests.request_counts import RequestCounts
from ottla.broker.requests.timing import Timing
from ottla.broker.throttle import Throttle
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
        farewell: Farewell,
        selector: Selector,
        memory: MemoryBudget,
        clock: Clock,
    ) -> None:
        self._connections = connections
        self._throttle = throttle
        self._farewell = farewell
        self._selector = selector
        self._memory = memory
        self._clock = clock
        self._timing = Timing(selector, clock)
        self._corked: list[Hashable] = []
        self.counts: RequestCounts | None = None
        """The counts of requests, if anything reads them."""
        self.latencies: Latencies | None = None
        """The latencies of requests, if anything reads them."""

    def receive(self, connection: Connection, frame: memoryview, now: float) -> None:
        """Handle a frame, or queue it behind those before it."""
        connection.last_active = now
        if self.counts is not None:
            self.counts.note(frame)
        # One request at a time: a response must not overtake another one, and what a client may make the broker hold
        # is bounded by not reading on.
        if connection.pending or not self._may_go_on(connection, frame):
            if not connection.pending:
                self._selector.mute(connection.channel_id)
            connection.pending.append((frame, now))
        else:
            self.handle(connection, frame, now, now)

    def sent(self, connection: Connection, now: float) -> None:
        """Handle the frames that waited until a response was sent."""
        connection.last_active = now
        if connection.unlogged is not None and not self._selector.queued_bytes(connection.channel_id):
            connection.unlogged(now)
            connection.unlogged = None
        if connection.pending:
            self.go_on(connection, now)

    def _may_go_on(self, connection: Connection, frame: memoryview) -> bool:
        if self._selector.queued_bytes(connection.channel_id):
            return False
        return connection.call is None or (
            connection.lets_append(frame) and not connection.door.table.has_quotas and not request_log.wanted()
        )

    def go_on(self, connection: Connection, now: float) -> None:
        """Handle the frames that waited behind a response, as far as no other request is in their way."""
        while connection.pending and self._may_go_on(connection, connection.pending[0][0]):
            frame, arrived = connection.pending.popleft()
            self.handle(connection, frame, now, arrived)
        if not connection.pending and not self._farewell.begun:
            self._selector.unmute(connection.channel_id)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """Answer a request, or begin to."""
        door = connection.door
        if connection.login is not None and not door.gate.lets_in(connection, frame, now, self._connections.hang_up):
            return
        if connection.call is None and door.table.answer_directly(connection, frame, now):
            if self.latencies is not None and connection.call is None:  # else it is a fetch that waits
                self.latencies.note_frame(frame, self._clock.monotonic() - arrived)
            return
        try:
            call, work = door.table.begin(self, connection, frame, now)
        except ProtocolError as error:
            self._refuse(connection, frame, str(error))
        except (
            Exception
        ):  # for instance if an upgrade replaced the files of a running broker, and new code does not fit
            log.exception(
                "a request from %s cannot be begun; a broker whose files were changed needs a restart", connection
            )
            self._refuse(connection, frame, "its request cannot be begun, as logged above")
        else:
            call.arrived = arrived
            self.carry_out(call, work)

    def _refuse(self, connection: Connection, frame: memoryview, why: str) -> None:
        self._memory.handed_out -= len(frame)
        self._connections.hang_up(connection, why)

    def carry_out(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Do work for a call and answer it, unless the response comes later. A failure costs one connection."""
        connection = call.connection
        connection.begin(call)
        parts: Sequence[Part] = ()
        entry = self._timing.begin(call) if request_log.wanted() else None
        work = connection.door.table.count_use(call, work)
        try:
            response = work()
            if response is Outcome.LATER:
                return None if entry is None else entry.pause(self._clock.monotonic())
            if not isinstance(response, Outcome):
                parts = encode_response(response, call.response_version, call.header.correlation_id)
        except HangUp as error:
            self._connections.hang_up(connection, str(error))
            return
        except Exception:
            log.exception("%s from %s failed", APIS[call.header.api_key].name, connection)
            self._connections.hang_up(connection, "its request failed, as logged above")
            return
        self._memory.handed_out -= call.size
        if self.latencies is not None:
            self.latencies.note(call.header.api_key, self._clock.monotonic() - call.arrived)
        if entry is not None:
            entry.answer(response, size_of(parts), self._clock.monotonic())
        if connection.call is call:
            self._send_answer(call, parts)
        else:
            call.parts = parts
        if entry is not None or call.pause_ms:
            self._answered(call, entry)

    def _send_answer(self, call: Call, parts: Sequence[Part]) -> None:
        """Send the response that is due, and those that waited for it."""
        connection = call.connection
        connection.call = None
        if parts:
            self._selector.send(connection.channel_id, parts)
            self._after_answer(call)
        if connection.behind:
            for more in connection.take_answers():
                self._selector.send(connection.channel_id, more)

    def _answered(self, call: Call, entry: request_log.RequestTimes | None) -> None:
        """Log a request and pause its connection; most requests need neither."""
        if entry is not None:
            slow_ms = call.connection.door.table.slow_request_ms
            self._timing.note(call, APIS[call.header.api_key].name, entry, slow_ms)
        if call.pause_ms and call.connection.call is None:
            self._throttle.pause(call, self)

    def note_answer(self, connection: Connection) -> None:
        """Remember connections that were answered while the node closes: they get time to read the response."""
        if self._farewell.begun:
            self._farewell.answered_last.add(connection.channel_id)

    def _after_answer(self, call: Call) -> None:
        self.note_answer(call.connection)
        if call.header.api_key == SaslAuthenticateRequest.KEY:
            call.connection.door.gate.after_step(call.connection)

    def resume(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Go on with a call that was kept, unless its client has disconnected; then with the frames behind it."""
        connection = call.connection
        if connection.is_under_way(call):
            if connection.behind:  # their responses may leave together with this one
                self._selector.cork(connection.channel_id)
                self._corked.append(connection.channel_id)
            self.carry_out(call, work)
            if connection.pending:
                self.go_on(connection, self._clock.monotonic())

    def keep(self, channel_id: Hashable) -> None:
        """Uncork a connection at the end of this turn of the loop."""
        self._corked.append(channel_id)

    def uncork(self) -> None:
        """Send the responses that were kept for others that followed at once."""
        while self._corked:
            self._selector.uncork(self._corked.pop())
