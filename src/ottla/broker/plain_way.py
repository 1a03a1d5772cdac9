"""The short way of a Produce and a Fetch as nearly all are: from the frame to the answer without a call, a message and a handler.

Only where no quotas bound requests and no log of them is written. What this does for a frame is what `RequestHandler.carry_out` does for a call. A Fetch that
waits is a call like others, so that what its client sends next waits behind it; only its answer is found and written the short way, or
by the handler, where there is more to say than records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.broker.fetching.waiting import WaitingFetch
from ottla.broker.node import BrokerNode
from ottla.broker.plain_fetch import PlainFetch
from ottla.broker.plain_produce import PlainProduce
from ottla.broker.requests import request_log
from ottla.broker.requests.call import Call
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.latencies import Latencies
from ottla.broker.throttle import Goes
from ottla.model import Part
from ottla.network.memory_budget import MemoryBudget
from ottla.protocol.conversation import decode_header
from ottla.protocol.messages.fetch import FetchRequest

log = logging.getLogger(__name__)


class PlainWay:
    """Takes frames to a node, and sends its answers."""

    def __init__(
        self,
        node: BrokerNode,
        memory: MemoryBudget,
        send: Callable[[int, Sequence[Part]], None],
        hang_up: Callable[[Connection, str], None],
        note_answer: Callable[[Connection], None],
        handler: Goes,
    ) -> None:
        """`handler` goes on with what turns out to be no matter for a short way."""
        self._node = node
        self._memory = memory
        self._send = send
        self._hang_up = hang_up
        self._note_answer = note_answer
        self._handler = handler
        self.latencies: Latencies | None = None
        """Where the time of a fetch that has waited is noted, if anybody reads it."""
        self.bar(barred=False)

    def bar(self, *, barred: bool) -> None:
        """Let no request pass, or those again that may."""
        self._is_open = not barred and not self._node.config.joins

    def takes(self, connection: Connection, frame: memoryview, now: float) -> bool:
        """Whether it was such a frame, which came at `now`; then all is done."""
        if not self._lets_pass():
            return False
        if len(frame) > 1 and frame[1] == FetchRequest.KEY:
            return self._takes_fetch(connection, frame, now)
        node = self._node
        produce = PlainProduce(frame)
        if not self._tries(connection, produce.read, node, connection):
            return False
        self._memory.handed_out -= len(frame)
        try:
            answer = produce.carry_out(node)
        except Exception:
            log.exception("Produce from %s failed", connection)
            self._hang_up(connection, "its request failed, as logged above")
        else:
            self._answer(connection, answer)
        return True

    def _lets_pass(self) -> bool:
        return self._is_open and self._node.quotas is None and not request_log.wanted()

    def _takes_fetch(self, connection: Connection, frame: memoryview, now: float) -> bool:
        fetch = PlainFetch(frame)
        node = self._node
        if not self._tries(connection, fetch.read, node) or not self._looks(fetch, connection):
            return False
        if not self._tries(connection, fetch.begin, node):
            return False
        deadline = now + fetch.max_wait_ms / 1000
        if self._is_due(fetch, deadline):
            self._memory.handed_out -= len(frame)
            self._answer_fetch(connection, fetch)
        else:
            header, _ = decode_header(frame)
            call = Call(self._handler, connection, header, now, len(frame))
            connection.begin(call)
            fetch.keep()
            self._wait(call, fetch, deadline)
        return True

    def _looks(self, fetch: PlainFetch, connection: Connection) -> bool:
        """Look, and see that it may be read."""
        node = self._node
        return self._tries(connection, fetch.look, node) and self._tries(
            connection, fetch.is_permitted, node, connection
        )

    def _tries(self, connection: Connection, step: Callable[..., bool], *arguments: object) -> bool:
        """Whether a step found all as usual; after a fault of our own the handler has it, as nothing was changed yet."""
        try:
            return step(*arguments)
        except Exception:
            log.exception("a request from %s could not go the short way", connection)
            return False

    def _is_due(self, fetch: PlainFetch, deadline: float) -> bool:
        node = self._node
        return fetch.size >= fetch.min_bytes or node.waiting.closed or node.clock.monotonic() >= deadline

    def _wait(self, call: Call, fetch: PlainFetch, deadline: float) -> None:
        waiting = WaitingFetch(
            fetch.awaited, fetch.min_bytes - fetch.size, partial(self._look_again, call, fetch, deadline), call
        )
        self._node.waiting.add(waiting, deadline)

    def _look_again(self, call: Call, fetch: PlainFetch, deadline: float) -> None:
        """Answer a fetch that has waited, or let it wait anew."""
        connection, node = call.connection, self._node
        if not (self._lets_pass() and self._looks(fetch, connection)):
            return call.resume(lambda: fetch.by_handler(node, call))
        if not self._is_due(fetch, deadline):
            return self._wait(call, fetch, deadline)
        connection.call = None
        self._memory.handed_out -= call.size
        self._answer_fetch(connection, fetch)
        if self.latencies is not None:
            self.latencies.note(FetchRequest.KEY, node.clock.monotonic() - call.arrived)
        if connection.pending:
            self._handler.go_on(connection, node.clock.monotonic())

    def _answer_fetch(self, connection: Connection, fetch: PlainFetch) -> None:
        """Send what was found; a fault of our own costs one connection."""
        try:
            parts = fetch.answer()
        except Exception:
            log.exception("Fetch from %s failed", connection)
            self._hang_up(connection, "its request failed, as logged above")
        else:
            self._answer(connection, parts)

    def _answer(self, connection: Connection, parts: Sequence[Part]) -> None:
        self._send(connection.channel_id, parts)
        self._note_answer(connection)
