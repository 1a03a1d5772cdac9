"""Request handling with faults. Runs in the broker's thread.

frame ──► RequestHandler.handle ──► FaultyRequestHandler.execute ──► RequestHandler.execute
                                        └─ held: the call is kept, like a fetch that waits for records

It replaces `RequestHandler.execute` while there are faults, and is not installed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ottla.broker.apis.handlers import HANDLERS
from ottla.broker.network_server.call import Call, DisconnectError, Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_handler import RequestHandler
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.server import Server
from ottla.errors import ErrorCode
from ottla.protocol.conversation import decode_header
from ottla.protocol.schema import Message
from ottla.testing.faults.fault import DELAY, DROP, FAIL, HOLD, LOSE, Fault
from ottla.testing.faults.refusing import build_refusal, carriers

Work = Callable[[], Message | Outcome]


class FaultyRequestHandler:
    """The faults of one broker, and the calls that they hold."""

    def __init__(self, server: Server) -> None:
        assert server.broker is not None
        self._node, self._handler, self._fast_path = server.node, server.handler, server.broker.fast_path
        self._faults: list[Fault] = []
        self._held: dict[Call, tuple[Fault, Work]] = {}
        self._lost: set[Call] = set()
        self._frame = memoryview(b"")
        """The request that is being handled."""

    def add(self, fault: Fault) -> None:
        """Activate a fault."""
        self._faults.append(fault)
        self._install()

    def remove(self, fault: Fault) -> None:
        """Remove a fault, and continue the requests that it holds."""
        if fault in self._faults:
            self._faults.remove(fault)
        for call in [call for call, (by, _) in self._held.items() if by is fault]:
            self._resume(call)
        if not self._faults:
            self._lost.clear()
            self._uninstall()

    def _install(self) -> None:
        """Install the methods on the instance, so that requests without faults cost nothing; disable the fast path."""
        vars(self._handler).update(handle=self.handle, execute=self.execute)
        self._fast_path.bar(barred=True)

    def _uninstall(self) -> None:
        for name in ("handle", "execute"):
            vars(self._handler).pop(name, None)
        self._fast_path.bar(barred=False)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """Handle a request as `RequestHandler.handle` does, and remember its frame."""
        self._frame = frame
        RequestHandler.handle(self._handler, connection, frame, now, arrived)

    def execute(self, call: Call, work: Work) -> None:
        """Carry out a request as `RequestHandler.execute` does, or apply a fault."""
        if call.connection.is_in_flight(call):  # it was deferred, and continues
            return RequestHandler.execute(self._handler, call, self._lose(call, work) if call in self._lost else work)
        api = HANDLERS[call.header.api_key].api.name
        fault = next((each for each in self._faults if each.is_hit_by(api)), None)
        if fault is None:
            RequestHandler.execute(self._handler, call, work)
        elif fault.kind in (DELAY, HOLD):
            self._hold(fault, call, work)
        else:
            RequestHandler.execute(self._handler, call, self._faulty_work(fault, call, work))

    def _faulty_work(self, fault: Fault, call: Call, work: Work) -> Work:
        if fault.kind == FAIL:
            return lambda: failed(fault, self._frame, work)
        if fault.kind == LOSE:
            self._lost.add(call)
            return self._lose(call, work)
        assert fault.kind == DROP
        return drop_request

    def _lose(self, call: Call, work: Work) -> Work:
        def lost() -> Message | Outcome:
            if work() is Outcome.LATER:
                return Outcome.LATER
            self._lost.discard(call)
            raise DisconnectError("a fault of the test loses its answer")

        return lost

    def _hold(self, fault: Fault, call: Call, work: Work) -> None:
        call.connection.begin(call)
        call.set_abandon_callback(lambda: self._forget(call))
        self._held[call] = fault, work
        if fault.kind == DELAY:
            node = self._node
            node.timers.schedule(node.clock.monotonic() + fault.seconds, lambda: self._resume(call))

    def _forget(self, call: Call) -> None:
        self._held.pop(call, None)

    def _resume(self, call: Call) -> None:
        if call in self._held:
            _, work = self._held.pop(call)
            call.set_abandon_callback(None)
            call.resume(work)


def drop_request() -> Message:
    raise DisconnectError("a fault of the test drops its request")


def failed(fault: Fault, frame: memoryview, work: Work) -> Message | Outcome:
    """Return a response with the fault's error. Metadata also lists brokers, so it is executed and then changed."""
    header, position = decode_header(frame)
    api = HANDLERS[header.api_key].api
    if api.name == "Metadata":
        return with_error(work(), fault.error_code)
    request = read_request(api.request, header.api_version, frame, position)
    if api.name == "Fetch" and not request.topics:
        return reset_fetch_session(fault, request, api.response, work)
    return build_refusal(request, api.response, header.api_version, fault.error_code)


def with_error(answer: Any, code: int) -> Message:
    for place in carriers(answer):
        place.error_code = code
    return cast(Message, answer)


def reset_fetch_session(fault: Fault, request: Any, answer: type[Any], work: Work) -> Message | Outcome:
    """Make a fetch name the partitions of its session by an error; the fault then affects the next fetch."""
    fault.happened -= 1
    fault.seen -= 1
    if request.session_epoch <= 0:
        return work()
    return cast(Message, answer(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
