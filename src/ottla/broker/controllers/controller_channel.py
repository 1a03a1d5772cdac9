"""The broker's way to the active controller, for what clients and the broker itself want of it.

    forward, ask ──► the active controller is in this process ──► a direct call ──► done(response)
                └──► it is elsewhere ──► queue ──► one request at a time over a PeerConnection ──► done(response)

A request that is not answered is sent again, to the controller that is active by then, for as long as clients wait. A request
of a client travels in an envelope that names the client (KIP-590).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol

from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.timers import Timers
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
"""How long a request is tried, `request.timeout.ms` of clients."""
RETRY_SECONDS = 0.1


class Errand(NamedTuple):
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

    def submit(
        self, connection: Connection | None, request: Message, version: int, done: Callable[[Message | None], None]
    ) -> None:
        """Decide a request of a client, or of this broker if `connection` is None.

        `done` is called later in the loop: with the response, or with None if the controller is no longer active.
        """


class Pending(NamedTuple):
    """A request that is queued for a controller elsewhere, or for the time when one is active."""

    request: Callable[[], Message]
    """Makes the request for a controller elsewhere."""
    version: int
    answer: type[Message]
    submit: Callable[[LocalController, Callable[[Message | None], None]], None]
    """Hands the request to a controller in this process."""
    done: Callable[[Message | OttlaError], None]
    """Takes the response, from a controller in this process or from elsewhere."""
    opened: Callable[[Message], Message]
    """Takes the response to a client's request out of its envelope."""


class ControllerChannel:
    """Sends requests to whichever node is the active controller. Belongs to the loop."""

    def __init__(
        self,
        leader: Callable[[], Address | None],
        connection: PeerConnection,
        local: LocalController | None,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`leader` returns the address of the active controller, if it is known."""
        self._leader = leader
        self._connection = connection
        self._local = local
        self._timers = timers
        self._clock = clock
        self._queue: deque[Pending] = deque()
        self._current: Pending | None = None
        self._reason = ""
        self._is_closed = False

    def forward(self, call: Call, request: Message, frame: memoryview) -> Outcome:
        """Have a client's request decided; the call is answered later."""
        connection, version = call.connection, call.header.api_version
        self._begin(
            Pending(
                lambda: EnvelopeRequest(bytes(frame), principal_of(connection), ip_address(connection.peer[0]).packed),
                0,
                EnvelopeResponse,
                lambda local, done: local.submit(connection, request, version, done),
                lambda said: call.resume(partial(response_or_hang_up, said)),
                partial(opened, call),
            )
        )
        return Outcome.LATER

    def ask(self, errand: Errand) -> None:
        """Send a request of the broker itself."""
        request, version = errand.request, errand.version

        def done(said: Message | OttlaError) -> None:
            if isinstance(said, OttlaError):
                log.warning("%s", said)
                errand.done(None)
            else:
                errand.done(said)

        submit = lambda local, done: local.submit(None, request, version, done)  # noqa: E731
        self._begin(Pending(lambda: request, version, errand.answer, submit, done, lambda said: said))

    def close(self) -> None:
        """Answer no request any more; those that were sent may be carried out all the same."""
        self._is_closed = True
        self._queue.clear()
        self._current = None
        self._connection.close()

    def _begin(self, pending: Pending) -> None:
        local = self._local
        if local is not None and local.is_active:
            pending.submit(local, partial(self._decided, pending))
        else:
            self._put(pending)

    def _decided(self, pending: Pending, said: Message | None) -> None:
        """Take the decision of the controller in this process. One that is no longer active has made none."""
        if self._is_closed:
            return
        if said is None:
            self._put(pending)
        else:
            apply_response(pending, said)

    def _put(self, pending: Pending) -> None:
        self._queue.append(pending)
        self._send_next()

    # one request at a time

    def _send_next(self) -> None:
        if self._current is None and self._queue:
            self._current = pending = self._queue.popleft()
            self._reason = "no controller is known"
            self._timers.at(self._clock.monotonic() + ANSWER_SECONDS, partial(self._expire, pending))
            self._send(pending)

    def _send(self, pending: Pending) -> None:
        if pending is not self._current:
            return
        local, address = self._local, self._leader()
        if local is not None and local.is_active:
            pending.submit(local, partial(self._decided_late, pending))
        elif address is None:
            self._retry(pending, self._reason)
        else:
            done = partial(self._answered, pending, address)
            self._connection.ask(Question(address, pending.request(), pending.version, pending.answer, done))

    def _decided_late(self, pending: Pending, said: Message | None) -> None:
        if said is None:
            self._retry(pending, "this node is not the controller any more")
        else:
            self._finish(pending, said)

    def _answered(self, pending: Pending, address: Address, said: Any) -> None:
        if isinstance(said, PeerRefused):
            refusal = f"the controller at {address} does not let this broker in: {said}"
            self._finish(pending, OttlaError(refusal))
        elif isinstance(said, PeerLost):
            self._retry(pending, f"{address}: {said}")
        elif getattr(said, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._retry(pending, f"{address} is not the controller any more")
        else:
            self._finish_opened(pending, said)

    def _finish_opened(self, pending: Pending, said: Message) -> None:
        try:
            response: Message | OttlaError = pending.opened(said)
        except OttlaError as error:
            response = error
        self._finish(pending, response)

    def _retry(self, pending: Pending, reason: str) -> None:
        if pending is self._current:
            self._reason = reason
            self._timers.at(self._clock.monotonic() + RETRY_SECONDS, partial(self._send, pending))

    def _expire(self, pending: Pending) -> None:
        if pending is self._current:
            self._connection.close()
            self._finish(pending, OttlaError(f"no controller answers: {self._reason}"))

    def _finish(self, pending: Pending, said: Message | OttlaError) -> None:
        if pending is self._current:
            self._current = None
            apply_response(pending, said)
            self._send_next()


def apply_response(pending: Pending, said: Message | OttlaError) -> None:
    """Give a response to what has waited for it; an error there does not keep other requests from being sent."""
    try:
        pending.done(said)
    except Exception:
        log.exception("a response of the controllers could not be applied; the next request is sent")


def principal_of(connection: Connection) -> bytes:
    """Return the principal of a client as controllers read it: the version of the schema, then the principal."""
    kind, _, name = connection.principal.partition(":")
    parts = Writer(b"\0\0").write(
        plan_of(DefaultPrincipalData, 0), DefaultPrincipalData(kind, name, connection.by_token)
    )
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def opened(call: Call, said: Any) -> Message:
    """Return the response in an envelope. OttlaError if the controller rejected the envelope."""
    if said.error_code:
        raise OttlaError(f"the controllers do not take the request: {name_of(said.error_code)}")
    api = APIS[call.header.api_key]
    return decode_response(api.response, call.response_version, memoryview(said.response_data or b""))[1]


def response_or_hang_up(said: Message | OttlaError) -> Message:
    """Return a response. If there is none, the connection of the client is closed, so that it asks another broker."""
    if isinstance(said, OttlaError):
        raise HangUp(str(said))
    return said
