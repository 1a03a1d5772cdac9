"""The way of requests through a broker in which something goes wrong. Works in the broker's thread.

    frame ──► RequestHandler.handle ──► FaultyWay.carry_out ──► RequestHandler.carry_out
                                      └─ held: the call is kept, as one that waits for records is

It takes the place of `RequestHandler.carry_out` while there are faults, and is nowhere while there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ottla.broker.handlers import HANDLERS
from ottla.broker.request_handler import RequestHandler
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.broker.server import Server
from ottla.errors import ErrorCode
from ottla.protocol.conversation import decode_header
from ottla.protocol.schema import Message
from ottla.testing.faults.fault import DELAY, DROP, FAIL, HOLD, LOSE, Fault
from ottla.testing.faults.refusing import carriers, refusal

Work = Callable[[], Message | Outcome]


class FaultyWay:
    """The faults of one broker, and the calls that they hold."""

    def __init__(self, server: Server) -> None:
        assert server.broker is not None
        self._node, self._handler, self._plain_way = server.node, server.handler, server.broker.plain_way
        self._faults: list[Fault] = []
        self._held: dict[Call, tuple[Fault, Work]] = {}
        self._lost: set[Call] = set()
        self._frame = memoryview(b"")
        """The request that is handled now."""

    def add(self, fault: Fault) -> None:
        """Let a fault be in effect."""
        self._faults.append(fault)
        self._stand_in_the_way()

    def remove(self, fault: Fault) -> None:
        """Let it be over, and what it holds go on."""
        if fault in self._faults:
            self._faults.remove(fault)
        for call in [call for call, (by, _) in self._held.items() if by is fault]:
            self._let_go(call)
        if not self._faults:
            self._lost.clear()
            self._step_aside()

    def _stand_in_the_way(self) -> None:
        """On the instance, so that nothing is asked on the way of requests while there is no fault; the short way is shut."""
        vars(self._handler).update(handle=self.handle, carry_out=self.carry_out)
        self._plain_way.bar(barred=True)

    def _step_aside(self) -> None:
        for name in ("handle", "carry_out"):
            vars(self._handler).pop(name, None)
        self._plain_way.bar(barred=False)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """What `RequestHandler.handle` does, with the frame at hand."""
        self._frame = frame
        RequestHandler.handle(self._handler, connection, frame, now, arrived)

    def carry_out(self, call: Call, work: Work) -> None:
        """What `RequestHandler.carry_out` does, or what a fault makes of it."""
        if call.connection.is_under_way(call):  # it was kept, and goes on
            return RequestHandler.carry_out(self._handler, call, self._lose(call, work) if call in self._lost else work)
        api = HANDLERS[call.header.api_key].api.name
        fault = next((each for each in self._faults if each.hits(api)), None)
        if fault is None:
            RequestHandler.carry_out(self._handler, call, work)
        elif fault.kind in (DELAY, HOLD):
            self._hold(fault, call, work)
        else:
            RequestHandler.carry_out(self._handler, call, self._spoiled(fault, call, work))

    def _spoiled(self, fault: Fault, call: Call, work: Work) -> Work:
        if fault.kind == FAIL:
            return lambda: failed(fault, self._frame, work)
        if fault.kind == LOSE:
            self._lost.add(call)
            return self._lose(call, work)
        assert fault.kind == DROP
        return dropped

    def _lose(self, call: Call, work: Work) -> Work:
        def lost() -> Message | Outcome:
            if work() is Outcome.LATER:
                return Outcome.LATER
            self._lost.discard(call)
            raise HangUp("a fault of the test loses its answer")

        return lost

    def _hold(self, fault: Fault, call: Call, work: Work) -> None:
        call.connection.begin(call)
        call.on_abandoned = lambda: self._forget(call)
        self._held[call] = fault, work
        if fault.kind == DELAY:
            node = self._node
            node.timers.at(node.clock.monotonic() + fault.seconds, lambda: self._let_go(call))

    def _forget(self, call: Call) -> None:
        self._held.pop(call, None)

    def _let_go(self, call: Call) -> None:
        if call in self._held:
            _, work = self._held.pop(call)
            call.on_abandoned = None
            call.resume(work)


def dropped() -> Message:
    raise HangUp("a fault of the test drops its request")


def failed(fault: Fault, frame: memoryview, work: Work) -> Message | Outcome:
    """An answer with the fault's error. Metadata tells its brokers as well, so it is asked for and spoiled."""
    header, position = decode_header(frame)
    api = HANDLERS[header.api_key].api
    if api.name == "Metadata":
        return spoiled(work(), fault.error_code)
    request = read_request(api.request, header.api_version, frame, position)
    if api.name == "Fetch" and not request.topics:
        return unnamed(fault, request, api.response, work)
    return refusal(request, api.response, header.api_version, fault.error_code)


def spoiled(answer: Any, code: int) -> Message:
    for place in carriers(answer):
        place.error_code = code
    return cast(Message, answer)


def unnamed(fault: Fault, request: Any, answer: type[Any], work: Work) -> Message | Outcome:
    """A fetch that does not name the partitions of its session: it is made to, and the next counts in its place."""
    fault.happened -= 1
    fault.seen -= 1
    if request.session_epoch <= 0:
        return work()
    return cast(Message, answer(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
