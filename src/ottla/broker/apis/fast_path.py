"""The fast path of Produce and Fetch: from the frame to the response without call, message and handler.

    frame ──► FastProduce or FastFetch parses it ──► supported? ──► append or read ──► response bytes
                                                          └ no: RequestHandler processes the frame

A request that is answered at once needs no call, and this does for it what `RequestHandler.execute` does for a call. A request
becomes a call if it waits (a Fetch for records, a Produce for other replicas), behind another request, with quotas, and
with a request log. The response is built here in all cases, or by the handler if it contains anything but records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.broker.apis.fast_fetch import FastFetch
from ottla.broker.apis.fast_produce import FastProduce, UncommittedBatch
from ottla.broker.apis.produce import ProduceOutcome, may_be_lost, not_committed
from ottla.broker.network_server import request_log
from ottla.broker.network_server.call import Call, EncodedResponse, Outcome, Response
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_counts import RequestCounts
from ottla.broker.network_server.request_latencies import Latencies
from ottla.broker.network_server.throttle import RequestResumer
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.leadership import Leadership, WaitingProduce
from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.model import Part
from ottla.network.memory_budget import MemoryBudget
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.schema import Message
from ottla.storage.log.append_path import Appended

log = logging.getLogger(__name__)
THROTTLE_TIME_AT = 5
"""The position of the throttle time in the response to a Fetch of a flexible version."""


class FastPath:
    """Processes the frames of a node, and sends the responses."""

    def __init__(
        self,
        node: BrokerNode,
        memory: MemoryBudget,
        send: Callable[[int, Sequence[Part]], None],
        hang_up: Callable[[Connection, str], None],
        note_answer: Callable[[Connection], None],
        handler: RequestResumer,
    ) -> None:
        """Create the fast path. `handler` processes what the fast path does not support after a wait, and the connection's next requests."""
        self._node = node
        self._memory = memory
        self._send = send
        self._hang_up = hang_up
        self._note_answer = note_answer
        self._handler = handler
        self.counts: RequestCounts | None = None
        """Counts of errors; None if they are not counted."""
        self.latencies: Latencies | None = None
        """Latencies of requests; None if they are not measured."""
        self.bar(barred=False)

    def bar(self, *, barred: bool) -> None:
        """Disable the fast path, or enable it again."""
        self._is_barred = barred

    def takes(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        """Process the frame that was received at `arrived`. False if the handler has to process it."""
        if self._is_barred:
            return False
        if len(frame) > 1 and frame[1] == FetchRequest.KEY:
            return connection.call is None and self._takes_fetch(connection, frame, now, arrived)
        node = self._node
        produce = FastProduce(frame)
        if not self._tries(connection, produce.read, node, connection):
            return False
        if connection.call is not None or self._needs_call():
            call = self._call(connection, frame, now, arrived)
            self._handler.execute(call, partial(self._produce, call, produce))
            return True
        try:
            outcomes = produce.append(node)
            is_settled = self._settle(produce, outcomes)
            response = produce.answer(outcomes)
            if not is_settled:
                call = self._call(connection, frame, now, arrived)
                connection.begin(call)
                self._wait_for_commit(call, produce, outcomes, response)
                return True
            if isinstance(response, EncodedResponse):
                parts: Sequence[Part] = response.parts
            else:
                if self.counts is not None:
                    self.counts.record_errors(ProduceRequest.KEY, response)
                parts = encode_response(response, produce.version, produce.correlation_id)
        except Exception:
            self._fail(connection, frame, "Produce")
        else:
            self._answer(connection, frame, parts, ProduceRequest.KEY, arrived)
        return True

    def _needs_call(self) -> bool:
        return self._node.quotas is not None or request_log.is_enabled()

    def _call(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> Call:
        header, _ = decode_header(frame)
        call = Call(self._handler, connection, header, now, len(frame))
        call.arrived = arrived
        return call

    # Produce

    def _produce(self, call: Call, produce: FastProduce) -> Response:
        """Append, and return the response unless other replicas have to confirm the append."""
        outcomes = produce.append(self._node)
        is_settled = self._settle(produce, outcomes)
        response = produce.answer(outcomes)
        if is_settled:
            return response
        self._wait_for_commit(call, produce, outcomes, response)
        return Outcome.LATER

    def _wait_for_commit(
        self, call: Call, produce: FastProduce, outcomes: list[ProduceOutcome], response: Message | EncodedResponse
    ) -> None:
        """Have the call answered when its batches are committed, or when its time is over."""
        produce.release()
        call.is_appended = True
        deadline = call.received + produce.timeout_ms / 1000
        required: dict[Leadership, int] = {}
        for leadership, end_offset, _ in produce.uncommitted:
            required[leadership] = min(end_offset, required.get(leadership, end_offset))
        work = partial(self._check_commit, call, produce, outcomes, response, deadline)
        self._node.waiting.add(WaitingProduce(required, partial(call.resume, work), call), deadline)

    def _check_commit(
        self,
        call: Call,
        produce: FastProduce,
        outcomes: list[ProduceOutcome],
        response: Message | EncodedResponse,
        deadline: float,
    ) -> Response:
        """Return the response once every batch is committed, failed or timed out; else wait again."""
        node = self._node
        is_over = node.waiting.closed or node.clock.monotonic() >= deadline
        if not self._settle(produce, outcomes, is_over=is_over):
            self._wait_for_commit(call, produce, outcomes, response)
            return Outcome.LATER
        return response if all(isinstance(each, Appended) for each in outcomes) else produce.refusal(outcomes)

    def _settle(self, produce: FastProduce, outcomes: list[ProduceOutcome], *, is_over: bool = False) -> bool:
        """Set the errors of batches that are not going to be committed, or whose time is over. True if none is left.

        Where this broker is the only replica in sync, a batch is committed as soon as it is appended.
        """
        left: list[UncommittedBatch] = []
        for batch in produce.uncommitted:
            code = batch.leadership.find_outcome(batch.end_offset)
            if code is None and not is_over:
                left.append(batch)
            elif code is None:
                outcomes[batch.number] = not_committed(batch.end_offset, produce.timeout_ms)
            elif code:
                outcomes[batch.number] = may_be_lost(batch.end_offset, code)
        produce.uncommitted[:] = left
        return not left

    # Fetch

    def _takes_fetch(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        fetch = FastFetch(frame)
        node = self._node
        if not self._tries(connection, fetch.read, node):
            return False
        deadline = now + fetch.max_wait_ms / 1000
        if self._needs_call():
            if not self._tries(connection, fetch.advance_session, node):
                return False
            call = self._call(connection, frame, now, arrived)
            self._handler.execute(call, partial(self._fetch, call, fetch, deadline))
            return True
        if not (
            self._is_complete(fetch, connection, fetch.max_bytes)
            and self._tries(connection, fetch.advance_session, node)
        ):
            return False
        if self._is_due(fetch, deadline):
            self._answer_fetch(connection, frame, fetch, arrived)
        else:
            call = self._call(connection, frame, now, arrived)
            connection.begin(call)
            self._wait_for_records(call, fetch, deadline)
        return True

    def _fetch(self, call: Call, fetch: FastFetch, deadline: float) -> Response:
        """Read, and return the records, or wait for more."""
        node = self._node
        limit = fetch.max_bytes if node.quotas is None else node.quotas.most_bytes(call, fetch.max_bytes)
        if self._is_barred or not self._is_complete(fetch, call.connection, limit):
            return fetch.by_handler(node, call)
        if self._is_due(fetch, deadline):
            return EncodedResponse(fetch.answer(), THROTTLE_TIME_AT)
        self._wait_for_records(call, fetch, deadline)
        return Outcome.LATER

    def _is_complete(self, fetch: FastFetch, connection: Connection, limit: int) -> bool:
        """Read the logs. False if the handler has to respond, or the client may not read all topics."""
        node = self._node
        return self._tries(connection, fetch.read_logs, node, limit) and self._tries(
            connection, fetch.is_permitted, node, connection
        )

    def _tries(self, connection: Connection, step: Callable[..., bool], *arguments: object) -> bool:
        """Run a step, and return its result.

        A step that fails has changed nothing yet, so the handler processes the request.
        """
        try:
            return step(*arguments)
        except Exception:
            log.exception("the fast path failed for a request from %s", connection)
            return False

    def _is_due(self, fetch: FastFetch, deadline: float) -> bool:
        node = self._node
        return fetch.found_bytes >= fetch.min_bytes or node.waiting.closed or node.clock.monotonic() >= deadline

    def _wait_for_records(self, call: Call, fetch: FastFetch, deadline: float) -> None:
        fetch.keep()
        waiting = WaitingFetch(
            fetch.awaited, fetch.min_bytes - fetch.found_bytes, partial(self._recheck, call, fetch, deadline), call
        )
        self._node.waiting.add(waiting, deadline)

    def _recheck(self, call: Call, fetch: FastFetch, deadline: float) -> None:
        """Answer a fetch that has waited, or let it wait again."""
        connection, node = call.connection, self._node
        if self._needs_call():
            return call.resume(partial(self._fetch, call, fetch, deadline))
        if self._is_barred or not self._is_complete(fetch, connection, fetch.max_bytes):
            return call.resume(lambda: fetch.by_handler(node, call))
        if not self._is_due(fetch, deadline):
            return self._wait_for_records(call, fetch, deadline)
        connection.call = None
        self._memory.handed_out -= call.size
        self._answer_fetch(connection, None, fetch, call.arrived)
        if connection.pending:
            self._handler.handle_next(connection, node.clock.monotonic())

    def _answer_fetch(self, connection: Connection, frame: memoryview | None, fetch: FastFetch, arrived: float) -> None:
        """Send the records that were read. A failure closes this connection only."""
        try:
            parts = fetch.answer()
        except Exception:
            self._fail(connection, frame, "Fetch")
        else:
            self._answer(connection, frame, parts, FetchRequest.KEY, arrived)

    # the end

    def _fail(self, connection: Connection, frame: memoryview | None, api: str) -> None:
        """Close the connection of a request that failed after it had changed something."""
        log.exception("%s from %s failed", api, connection)
        if frame is not None:
            self._memory.handed_out -= len(frame)
        self._hang_up(connection, "its request failed, as logged above")

    def _answer(
        self, connection: Connection, frame: memoryview | None, parts: Sequence[Part], api_key: int, arrived: float
    ) -> None:
        """Send a response. `frame` is None if its bytes were given back before."""
        if frame is not None:
            self._memory.handed_out -= len(frame)
        self._send(connection.channel_id, parts)
        self._note_answer(connection)
        if self.latencies is not None:
            self.latencies.record(api_key, self._node.clock.monotonic() - arrived)
