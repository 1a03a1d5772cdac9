"""Hands what clients want of the controllers on to them, each request in an envelope that says whose it is (KIP-590)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_errors import PeerRefused
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError, name_of
from ottla.protocol.apis import APIS
from ottla.protocol.codec import Writer
from ottla.protocol.conversation import decode_response
from ottla.protocol.messages.envelope import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)
ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.1


M = TypeVar("M", bound=Message)


class Envelope(NamedTuple):
    call: Call
    frame: bytes


class Errand(NamedTuple):
    """What the broker itself wants of the controllers."""

    request: Message
    version: int
    answer: type[Message]
    done: Callable[[Any], None]
    """Called in the loop with the answer, or with None where there was none."""


class Forwarder:
    """One conversation with the active controller; requests go one after the other."""

    def __init__(
        self,
        controller: Callable[[], Address | None],
        connection: PeerConnection,
        call_soon: Callable[[Callable[[], None]], None],
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._call_soon = call_soon
        self._clock = clock
        self._connection = connection
        self._queue: SimpleQueue[Envelope | Errand | None] = SimpleQueue()
        self._over = False
        self._thread: threading.Thread | None = None

    def forward(self, call: Call, frame: bytes) -> Outcome:
        """Hand on a request, whose answer comes later."""
        self._put(Envelope(call, frame))
        return Outcome.LATER

    def ask(self, errand: Errand) -> None:
        """Ask on the broker's own account."""
        self._put(errand)

    def _put(self, entry: Envelope | Errand) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ottla-forwarder", daemon=True)
            self._thread.start()
        self._queue.put(entry)

    def close(self) -> None:
        """Answer nobody any more; what was handed on may be carried out all the same."""
        self._over = True
        self._queue.put(None)
        self._connection.give_up()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (envelope := self._queue.get()) is not None:
            if isinstance(envelope, Errand):
                self._run_errand(envelope)
                continue
            answer = self._tried(partial(self._answer, envelope))
            self._call_soon(lambda call=envelope.call, answer=answer: call.resume(lambda: given(answer)))  # type: ignore[misc]

    def _run_errand(self, errand: Errand) -> None:
        said = self._tried(partial(self._ask, errand.request, errand.version, errand.answer))
        if isinstance(said, OttlaError):
            log.warning("%s", said)
        self._call_soon(lambda: errand.done(None if isinstance(said, OttlaError) else said))

    def _tried(self, step: Callable[[], Message]) -> Message | OttlaError:
        """What came of it: whatever goes wrong with one request, the next is handed on."""
        try:
            return step()
        except OttlaError as error:
            return error
        except Exception:
            log.exception("a request could not be handed on to the controllers")
            return OttlaError("this broker failed at handing a request on to the controllers; its log says why")

    def _answer(self, envelope: Envelope) -> Message:
        """What the controller answers; OttlaError where there is none within the time that clients wait."""
        host = ip_address(envelope.call.connection.peer[0]).packed
        request = EnvelopeRequest(envelope.frame, principal_of(envelope.call.connection), host)
        said = self._ask(request, 0, EnvelopeResponse)
        if said.error_code:
            raise OttlaError(f"the controllers do not take the request: {name_of(said.error_code)}")
        return opened(envelope.call, said.response_data or b"")

    def _ask(self, request: Message, version: int, answer: type[M]) -> M:
        """What the active controller says, whoever that is by then."""
        deadline, reason = self._clock.monotonic() + ANSWER_SECONDS, "no controller is known"
        while not self._over and (left := deadline - self._clock.monotonic()) > 0:
            address = self._controller()
            try:
                if address is not None:
                    said = self._connection.ask(address, request, version, answer, left)
                    if getattr(said, "error_code", 0) != ErrorCode.NOT_CONTROLLER:
                        return said
                    reason = f"{address} is not the controller any more"
            except PeerRefused as error:
                raise OttlaError(f"the controller at {address} does not let this broker in: {error}") from None
            except OttlaError as error:
                reason = f"{address}: {error}"
            self._connection.wait(LOOK_SECONDS)
        raise OttlaError(f"no controller answers: {reason}")


def principal_of(connection: Connection) -> bytes:
    """Who asks, as controllers read it: the version of the schema, then the principal."""
    kind, _, name = connection.principal.partition(":")
    parts = Writer(b"\0\0").write(
        plan_of(DefaultPrincipalData, 0), DefaultPrincipalData(kind, name, connection.by_token)
    )
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def opened(call: Call, data: bytes) -> Message:
    """The answer within an envelope."""
    api = APIS[call.header.api_key]
    return decode_response(api.response, call.response_version, memoryview(data))[1]


def given(answer: Message | OttlaError) -> Message:
    if isinstance(answer, OttlaError):
        raise HangUp(str(answer))
    return answer
