"""A request from its frame to its answer.

    frame ──► header ──► body ──► handler ──► response ──► Selector
                                     └─ later: the call is kept, and answered by an append or a timer

The requests of a connection are handled one at a time, in order: what comes behind a request that waits, or behind an
answer that the client does not take, waits too, but for Produces behind Produces (`requests/connection.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ottla.broker.config_changes import is_own, refused_here
from ottla.broker.connections import Connections
from ottla.broker.farewell import Farewell
from ottla.broker.gate import Gate
from ottla.broker.handlers import FORWARDED, HANDLERS, Line, guarded, is_spoken
from ottla.broker.joined import Joined
from ottla.broker.node import BrokerNode
from ottla.broker.plain_way import PlainWay
from ottla.broker.requests import request_log
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.latencies import Latencies
from ottla.broker.requests.reading import read_request
from ottla.broker.requests.request_counts import RequestCounts
from ottla.broker.requests.timing import Timing
from ottla.broker.throttle import Throttle
from ottla.clock import Clock
from ottla.errors import ProtocolError
from ottla.model import Part, size_of
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)


class RequestHandler:
    """Handles what the clients of a node ask."""

    def __init__(
        self,
        node: BrokerNode,
        joined: Joined | None,
        connections: Connections,
        gate: Gate,
        throttle: Throttle,
        farewell: Farewell,
        selector: Selector,
        memory: MemoryBudget,
        clock: Clock,
    ) -> None:
        self._node = node
        self._joined = joined
        self._connections = connections
        self._gate = gate
        self._throttle = throttle
        self._farewell = farewell
        self._selector = selector
        self._memory = memory
        self._clock = clock
        self._timing = Timing(selector, clock)
        self._corked: list[Hashable] = []
        self.counts: RequestCounts | None = None
        """Where somebody reads them."""
        self._latencies: Latencies | None = None
        self.plain_way = PlainWay(node, memory, selector.send, connections.hang_up, self._note_answer, self)

    def measure(self, counts: RequestCounts, latencies: Latencies) -> None:
        """Count and time what comes from now on."""
        self.counts = counts
        self._latencies = self.plain_way.latencies = latencies

    def receive(self, connection: Connection, frame: memoryview, now: float) -> None:
        """Handle a frame, or put it behind those before it."""
        connection.last_active = now
        if self.counts is not None:
            self.counts.note(frame)
        # One request at a time: an answer must not overtake another's, and what a client may make us hold is bounded
        # by not reading on.
        if connection.pending or not self._may_go_on(connection, frame):
            if not connection.pending:
                self._selector.mute(connection.channel_id)
            connection.pending.append((frame, now))
        else:
            self.handle(connection, frame, now, now)

    def sent(self, connection: Connection, now: float) -> None:
        """An answer is gone: what waited behind it may go on."""
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
            connection.lets_append(frame) and self._node.quotas is None and not request_log.wanted()
        )

    def go_on(self, connection: Connection, now: float) -> None:
        """Handle what waited behind an answer, as far as nothing else stands in its way."""
        while connection.pending and self._may_go_on(connection, connection.pending[0][0]):
            frame, arrived = connection.pending.popleft()
            self.handle(connection, frame, now, arrived)
        if not connection.pending and not self._farewell.begun:
            self._selector.unmute(connection.channel_id)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """Answer a request, or begin to."""
        if connection.login is not None and not self._gate.lets_in(connection, frame, now, self._connections.hang_up):
            return
        if connection.call is None and self.plain_way.takes(connection, frame, now):
            if self._latencies is not None and connection.call is None:  # else it is a fetch that waits
                self._latencies.note_frame(frame, self._clock.monotonic() - arrived)
            return
        try:
            line, call, request = self._begun(connection, frame, now, arrived)
        except ProtocolError as error:
            self._refuse(connection, frame, str(error))
        except (
            Exception
        ):  # as where an upgrade changed the files of a broker that runs, and what is loaded now does not fit
            log.exception(
                "a request from %s cannot be begun; a broker whose files were changed needs a restart", connection
            )
            self._refuse(connection, frame, "its request cannot be begun, as logged above")
        else:
            joined = self._joined
            if joined is not None and line.api.name in FORWARDED and not is_own(request):
                self.carry_out(
                    call, lambda: refused_here(self._node, call, request) or joined.forward(call, bytes(frame))
                )
            elif self._node.access is None:
                self.carry_out(call, lambda: line.handle(self._node, call, request))
            else:
                self.carry_out(call, lambda: guarded(self._node, line, call, request))

    def _begun(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> tuple[Line, Call, Any]:
        """A request as it is read, its call, and who handles it; ProtocolError where nobody does."""
        header, position = decode_header(frame)
        line = HANDLERS[header.api_key]
        call = Call(self, connection, header, now, len(frame))
        call.arrived = arrived
        if not is_spoken(line.api.name, joins=self._node.config.joins):
            raise ProtocolError(f"it asks for {line.api.name}, which this broker of a cluster does not serve yet")
        if header.api_version in line.versions:
            return line, call, read_request(line.api.request, header.api_version, frame, position)
        # The one request that is answered in whatever version: it is how a client finds out which versions there
        # are.
        if header.api_key == ApiVersionsRequest.KEY:
            call.response_version = 0  # which every client can read, so that it may ask again
            return line, call, None
        raise ProtocolError(f"it asks for {line.api.name} v{header.api_version}, versions {line.versions} are spoken")

    def _refuse(self, connection: Connection, frame: memoryview, why: str) -> None:
        self._memory.handed_out -= len(frame)
        self._connections.hang_up(connection, why)

    def carry_out(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Do some work for a call, and answer it unless that is to come later; what fails, costs one connection."""
        connection = call.connection
        connection.begin(call)
        parts: Sequence[Part] = ()
        entry = self._timing.begin(call) if request_log.wanted() else None
        if self._node.quotas is not None:
            work = self._throttle.counted(self._node.quotas, call, work)
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
            log.exception("%s from %s failed", HANDLERS[call.header.api_key].api.name, connection)
            self._connections.hang_up(connection, "its request failed, as logged above")
            return
        self._memory.handed_out -= call.size
        if self._latencies is not None:
            self._latencies.note(call.header.api_key, self._clock.monotonic() - call.arrived)
        if entry is not None:
            entry.answer(response, size_of(parts), self._clock.monotonic())
        if connection.call is call:
            self._send_answer(call, parts)
        else:
            call.parts = parts
        if entry is not None or call.pause_ms:
            self._answered(call, entry)

    def _send_answer(self, call: Call, parts: Sequence[Part]) -> None:
        """Send what was due, and what waited for that."""
        connection = call.connection
        connection.call = None
        if parts:
            self._selector.send(connection.channel_id, parts)
            self._after_answer(call)
        if connection.behind:
            for more in connection.take_answers():
                self._selector.send(connection.channel_id, more)

    def _answered(self, call: Call, entry: request_log.RequestTimes | None) -> None:
        """What is left to do when an answer is on its way, and seldom is."""
        if entry is not None:
            self._timing.note(call, HANDLERS[call.header.api_key].api.name, entry, self._node.config.slow_request_ms)
        if call.pause_ms and call.connection.call is None:
            self._throttle.pause(call, self)

    def _note_answer(self, connection: Connection) -> None:
        if self._farewell.begun:
            self._farewell.answered_last.add(connection.channel_id)

    def _after_answer(self, call: Call) -> None:
        self._note_answer(call.connection)
        if call.header.api_key == SaslAuthenticateRequest.KEY:
            self._gate.after_step(call.connection)

    def resume(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Go on with a call that was kept, unless its client has gone; then with what waits behind it."""
        connection = call.connection
        if connection.is_under_way(call):
            if connection.behind:  # whose answers may leave with this one
                self._selector.cork(connection.channel_id)
                self._corked.append(connection.channel_id)
            self.carry_out(call, work)
            if connection.pending:
                self.go_on(connection, self._clock.monotonic())

    def keep(self, channel_id: Hashable) -> None:
        """Let answers go that are kept with those for others."""
        self._corked.append(channel_id)

    def uncork(self) -> None:
        """Let answers go that were kept for others that followed at once."""
        while self._corked:
            self._selector.uncork(self._corked.pop())
