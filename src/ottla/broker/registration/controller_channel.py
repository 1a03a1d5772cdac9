"""The broker's channel for requests to the active controller, its own ones and those of clients.

    forward, ask ──► the active controller is in this process ──► a direct call ──► done(response)
                └──► it is elsewhere ──► queue ──► one request at a time over a PeerConnection ──► done(response)

A request without a response is sent again, to the controller that is active by then, for up to `ANSWER_SECONDS`.
A client's request travels in an Envelope with the client's principal and address (KIP-590). An error in the Envelope's response
is about the envelope: NOT_CONTROLLER causes a retry. An error of the request itself is in the inner response, and is passed on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.broker.event_loop.timers import Timers
from ottla.broker.network_server.call import Call, DisconnectError, Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError, name_of
from ottla.protocol.apis import APIS, api_of
from ottla.protocol.codec import Writer
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.peers.peer_connection import PeerConnection
    from ottla.protocol.messages.envelope import EnvelopeRequest

log = logging.getLogger(__name__)
ANSWER_SECONDS = 30.0
"""How long a request is tried, `request.timeout.ms` of clients."""
RETRY_SECONDS = 0.1


def return_unchanged(response: Message) -> Message:
    """Return the response as it is."""
    return response


class ChannelRequest(NamedTuple):
    """A request of the broker itself."""

    request: Message
    version: int
    answer: type[Message]
    done: Callable[[Any], None]
    """Called in the loop with the response, or with None if there is none."""


class LocalController(Protocol):
    """The controller role in the same process."""

    @property
    def is_active(self) -> bool:
        """True if it is the active controller."""

    def submit(self, call: Call | None, request: Message, version: int, done: Callable[[Message | None], None]) -> None:
        """Decide a request of a client, or of this broker if `call` is None.

        `done` is called with the response, or with None if the controller is no longer active: before `submit` returns, or
        later in the loop.
        """


class PendingRequest(NamedTuple):
    """A request that is queued for a controller elsewhere, or for the time when one is active."""

    request: Callable[[], Message]
    """Makes the request for a controller elsewhere."""
    version: int
    answer: type[Message] | None
    """The class of the response; None for an envelope."""
    submit: Callable[[LocalController, Callable[[Message | None], None]], None]
    """Passes the request to a controller in this process."""
    done: Callable[[Message | OttlaError], None]
    """Called with the response, from a controller in this process or elsewhere, or with the error."""
    opened: Callable[[Message], Message]
    """Extracts the response to a client's request from its envelope."""


class ControllerChannel:
    """Sends requests to whichever node is the active controller. Belongs to the loop."""

    def __init__(
        self,
        leader: Callable[[], Address | None],
        connect: Callable[[], PeerConnection],
        local: LocalController | None,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`leader` returns the address of the active controller, if it is known; `connect` makes the connection at first use."""
        self._leader = leader
        self._connect = connect
        self._connection: PeerConnection | None = None
        self._local = local
        self._timers = timers
        self._clock = clock
        self._queue: deque[PendingRequest] = deque()
        self._current: PendingRequest | None = None
        self._reason = ""
        self._is_closed = False

    def forward(
        self,
        call: Call,
        request: Message,
        frame: memoryview | None,
        finish: Callable[[Any], Message] = return_unchanged,
    ) -> Message | Outcome:
        """Forward a client's request. Return the response that `finish` makes, or have the call answered later.

        `frame` is the request as it was received; None to encode `request`.
        """
        version = call.header.api_version
        responses: list[Message | OttlaError] = []
        is_late = False

        def done(said: Message | OttlaError) -> None:
            if is_late:
                call.resume(lambda: response_or_disconnect(said, finish))
            else:
                responses.append(said)

        self._start(
            PendingRequest(
                partial(build_envelope, call, request, frame),
                0,
                None,
                lambda local, then: local.submit(call, request, version, then),
                done,
                partial(open_envelope, call),
            )
        )
        is_late = True
        return response_or_disconnect(responses[0], finish) if responses else Outcome.LATER

    def send_request(self, errand: ChannelRequest) -> None:
        """Send a request of the broker itself."""
        request, version = errand.request, errand.version

        def done(said: Message | OttlaError) -> None:
            if isinstance(said, OttlaError):
                log.warning("%s", said)
                errand.done(None)
            else:
                errand.done(said)

        submit = lambda local, done: local.submit(None, request, version, done)  # noqa: E731
        self._start(PendingRequest(lambda: request, version, errand.answer, submit, done, lambda said: said))

    def close(self) -> None:
        """Stop answering requests. Requests that were sent may still be carried out."""
        self._is_closed = True
        self._queue.clear()
        self._current = None
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _start(self, pending: PendingRequest) -> None:
        local = self._local
        if local is not None and local.is_active:
            pending.submit(local, partial(self._handle_decision, pending))
        else:
            self._send_or_decide(pending)

    def _handle_decision(self, pending: PendingRequest, said: Message | None) -> None:
        """Handle the response of the controller in this process. None means that it is not active any more."""
        if self._is_closed:
            return
        if said is None:
            self._send_or_decide(pending)
        else:
            apply_response(pending, said)

    def _send_or_decide(self, pending: PendingRequest) -> None:
        self._queue.append(pending)
        self._send_next()

    # one request at a time

    def _send_next(self) -> None:
        if self._current is None and self._queue:
            self._current = pending = self._queue.popleft()
            self._reason = "no controller is known"
            self._timers.schedule(self._clock.monotonic() + ANSWER_SECONDS, partial(self._expire, pending))
            self._send(pending)

    def _send(self, pending: PendingRequest) -> None:
        if pending is not self._current:
            return
        local, address = self._local, self._leader()
        if local is not None and local.is_active:
            pending.submit(local, partial(self._decided_late, pending))
        elif address is None:
            self._retry(pending, self._reason)
        else:
            done = partial(self._handle_response, pending, address)
            from ottla.broker.peers.peer_connection import Question

            request = pending.request()
            answer = pending.answer or api_of(request).response
            if self._connection is None:
                self._connection = self._connect()
            self._connection.send_request(Question(address, request, pending.version, answer, done))

    def _decided_late(self, pending: PendingRequest, said: Message | None) -> None:
        if said is None:
            self._retry(pending, "this node is not the controller any more")
        else:
            self._finish(pending, said)

    def _handle_response(self, pending: PendingRequest, address: Address, said: Any) -> None:
        if isinstance(said, PeerRefused):
            refusal = f"the controller at {address} does not let this broker in: {said}"
            self._finish(pending, OttlaError(refusal))
        elif isinstance(said, PeerLost):
            self._retry(pending, f"{address}: {said}")
        elif getattr(said, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._retry(pending, f"{address} is not the controller any more")
        else:
            self._finish_opened(pending, said)

    def _finish_opened(self, pending: PendingRequest, said: Message) -> None:
        try:
            response: Message | OttlaError = pending.opened(said)
        except OttlaError as error:
            response = error
        self._finish(pending, response)

    def _retry(self, pending: PendingRequest, reason: str) -> None:
        if pending is self._current:
            self._reason = reason
            self._timers.schedule(self._clock.monotonic() + RETRY_SECONDS, partial(self._send, pending))

    def _expire(self, pending: PendingRequest) -> None:
        if pending is self._current:
            self._disconnect()
            self._finish(pending, OttlaError(f"no controller answers: {self._reason}"))

    def _finish(self, pending: PendingRequest, said: Message | OttlaError) -> None:
        if pending is self._current:
            self._current = None
            apply_response(pending, said)
            self._send_next()


def apply_response(pending: PendingRequest, said: Message | OttlaError) -> None:
    """Call the callback of a request. A failure in it does not keep other requests from being sent."""
    try:
        pending.done(said)
    except Exception:
        log.exception("a response of the controllers could not be applied; the next request is sent")


def encode_principal(connection: Connection) -> bytes:
    """Return a client's principal for an Envelope: the version of the schema, then the principal."""
    from ottla.protocol.messages.envelope import DefaultPrincipalData

    kind, _, name = connection.principal.partition(":")
    parts = Writer(b"\0\0").write(
        plan_of(DefaultPrincipalData, 0), DefaultPrincipalData(kind, name, connection.by_token)
    )
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def open_envelope(call: Call, said: Any) -> Message:
    """Return the response in an envelope. OttlaError if the controller rejected the envelope."""
    if said.error_code:
        raise OttlaError(f"the controllers do not take the request: {name_of(said.error_code)}")
    api = APIS[call.header.api_key]
    return decode_response(api.response, call.response_version, memoryview(said.response_data or b""))[1]


def response_or_disconnect(said: Message | OttlaError, finish: Callable[[Any], Message]) -> Message:
    """Return the response. If there is none, the connection of the client is closed, so that it asks another broker."""
    if isinstance(said, OttlaError):
        raise DisconnectError(str(said))
    return finish(said)


def build_envelope(call: Call, request: Message, frame: memoryview | None) -> EnvelopeRequest:
    """Return the envelope with a client's request for a controller elsewhere."""
    from ottla.protocol.messages.envelope import EnvelopeRequest

    header = call.header
    if frame is None:
        parts = encode_request(request, header.api_version, header.correlation_id, header.client_id)
        data = b"".join(map(bytes, parts))  # type: ignore[arg-type]  # requests have no files
    else:
        data = bytes(frame)
    return EnvelopeRequest(data, encode_principal(call.connection), ip_address(call.connection.peer[0]).packed)
