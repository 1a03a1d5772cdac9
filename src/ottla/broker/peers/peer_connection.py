"""One connection to another node of the cluster, in the event loop: a request, then its response; nothing blocks in between.

    send_request ──► connected, logged in ──► sent ──► the frame that comes ──► done(response)
                     the connection ends, or nothing comes in time ──► done(PeerLost)

The loop's selector knows the connection by this object, and the loop hands it its frames. `done` is never called within `send_request`.
A request names the address: the connection is opened for it, and again if the address has changed or the connection
has ended. Where the listener requires it, the connection is encrypted and logged in first, and logged in again before the
session ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.event_loop.timers import Timer, Timers
from ottla.broker.peers.network_partition import NetworkPartition, Splittable
from ottla.broker.peers.own_connection import OutgoingConnection
from ottla.broker.peers.peer_errors import PeerDisconnected, PeerLost, PeerRefused
from ottla.broker.peers.peer_login import PeerLogins, PendingLogin
from ottla.broker.settings.peer_security import PeerSecurity
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ProtocolError
from ottla.network.channel import MakeChannel
from ottla.network.refusal import NotListening, PeerRefusal
from ottla.network.selector import Selector
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from ottla.protocol.schema import Message
from ottla.security.login import Login, LoginError
from ottla.security.security import WITH_LOGIN

log = logging.getLogger(__name__)
CONNECT_SECONDS = 5.0
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2
NEVER = float("inf")
OF_A_SESSION = 0.85
"""The part of a session after which a login is repeated (KIP-368)."""
ANSWER_SECONDS = 30.0
"""`replica.socket.timeout.ms`"""
LOOK_SECONDS = 0.01
"""The interval between two checks for a response of the KDC."""


KINDS: dict[type[str], type[PeerLost]] = {PeerRefusal: PeerRefused, NotListening: PeerDisconnected}
"""The error for each kind of reason for which a connection was lost."""


class Question(NamedTuple):
    address: Address
    request: Message
    version: int
    answer: type[Message]
    done: Callable[[Any], None]
    """Called with the response, or with PeerLost."""


class Expected(NamedTuple):
    """The response that is expected next."""

    correlation_id: int
    version: int
    answer: type[Message]
    then: Callable[[Any], None]


class PeerConnection(OutgoingConnection, Splittable):
    """Sends one request at a time. Belongs to the loop."""

    def __init__(
        self,
        client_id: str,
        selector: Selector,
        timers: Timers,
        clock: Clock,
        security: PeerSecurity,
        logins: PeerLogins,
        make_channel: MakeChannel,
        split: NetworkPartition,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Create a connection. A request without a response within `answer_seconds` counts as lost."""
        self._client_id = client_id
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._logins = logins
        self._pending_login: PendingLogin | None = None
        """The login that waits for the KDC."""
        self._make_channel = make_channel
        self._split = split
        self._answer_seconds = answer_seconds
        split.add(self)
        self._logs_in = security.config.security_protocol in WITH_LOGIN
        self._login_until = NEVER
        self._address: Address | None = None
        """The address of the open connection, or of the one being opened."""
        self._question: Question | None = None
        self._expected: Expected | None = None
        self._correlation_id = 0
        self._deadline = NEVER
        self._alarm: Timer | None = None

    def send_request(self, question: Question) -> None:
        """Send a request. The previous one must have been answered."""
        assert self._question is None, "one at a time"
        self._question = question
        self._deadline = self._clock.monotonic() + self._answer_seconds
        if self._alarm is None:
            self._alarm = self._timers.schedule(self._deadline, self._check_deadlines)
        if question.address != self._address:
            self._connect(question.address)
        elif self._login_until < NEVER and self._clock.monotonic() >= self._login_until:
            self._log_in()
        else:
            self._send_next()

    def handle_frame(self, frame: memoryview) -> None:
        expected, self._expected = self._expected, None
        try:
            if expected is None:
                raise ProtocolError("it sent a response without a request")
            correlation_id, message = decode_response(expected.answer, expected.version, frame)
            if correlation_id != expected.correlation_id:
                raise ProtocolError(f"it sent correlation id {correlation_id}, expected {expected.correlation_id}")
        except ProtocolError as error:
            self._abandon(PeerLost(str(error)))
        else:
            self._call_next(expected.then, message)

    def handle_closed(self, reason: str) -> None:
        if self._selector.channel(self) is not None:
            return  # it concerns an earlier connection: a response came in the same turn, and the next request used another one
        self._address = self._pending_login = None
        kind = next((kind for why, kind in KINDS.items() if isinstance(reason, why)), PeerLost)
        self._fail(kind(reason or "the connection was closed on the other side"))

    def split_changed(self) -> None:
        question = self._question
        if self._address is None:
            if question is not None and not self._split.is_hidden(question.address):
                self._connect(question.address)
        elif not self._split.is_hidden(self._address):
            self._selector.uncork(self)
            self._selector.unmute(self)
        elif self._is_connecting():
            self._disconnect()
        else:
            self._selector.mute(self)
            self._selector.cork(self)

    def close(self) -> None:
        """Close the connection; `done` of the request under way is not called."""
        self._question = None
        self._disconnect()
        if self._alarm is not None:
            self._timers.cancel(self._alarm)
            self._alarm = None

    def _connect(self, address: Address) -> None:
        self._disconnect()
        if self._split.is_hidden(address):
            self._wait_for_network()
            return
        self._address = address
        self._selector.connect(self, address.host, address.port, timeout=CONNECT_SECONDS, how=self._make_channel)
        if self._logs_in:
            self._log_in()
        else:
            self._send_next()

    def _wait_for_network(self) -> None:
        """Wait until the address is reachable, with the time limit of a connection.

        `split_changed` then opens the connection.
        """
        self._deadline = min(self._deadline, self._clock.monotonic() + CONNECT_SECONDS)
        if self._alarm is not None:
            self._timers.cancel(self._alarm)
        self._alarm = self._timers.schedule(self._deadline, self._check_deadlines)

    def _is_connecting(self) -> bool:
        channel = self._selector.channel(self)
        return channel is not None and channel.connecting

    def _send_next(self) -> None:
        question = self._question
        assert question is not None
        self._send(question.request, question.version, question.answer, self._handle_response)

    def _handle_response(self, message: Message) -> None:
        question, self._question = self._question, None
        assert question is not None
        question.done(message)

    def _send(self, request: Message, version: int, answer: type[Message], then: Callable[[Any], None]) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._expected = Expected(self._correlation_id, version, answer, then)
        self._selector.send(self, encode_request(request, version, self._correlation_id, self._client_id))

    def _log_in(self) -> None:
        """Log in, then send the request."""
        assert self._address is not None
        self._pending_login = self._logins.start_login(self._address.host, self._selector.wakeup)
        self._check_login(self._pending_login, at_first=True)

    def _check_login(self, pending: PendingLogin, *, at_first: bool = False) -> None:
        if pending is not self._pending_login:
            return  # the connection has ended meanwhile
        login, error = None, None
        try:
            login = pending.login()
        except PeerLost as lost:
            error = lost
        if login is not None:
            self._pending_login = None
            self._start_login(login)
        elif error is None or at_first:  # `done` is not called within `send_request`
            self._timers.schedule(self._clock.monotonic() + LOOK_SECONDS, lambda: self._check_login(pending))
        else:
            self._abandon(error)

    def _start_login(self, login: Login) -> None:
        self._send(
            login.first(), HANDSHAKE_VERSION, SaslHandshakeResponse, lambda said: self._continue_login(login, said)
        )

    def _continue_login(self, login: Login, said: Message) -> None:
        try:
            message = login.next(said)
        except LoginError as error:
            self._abandon(PeerRefused(str(error)))
            return
        if message is not None:
            then = lambda said: self._continue_login(login, said)  # noqa: E731
            self._send(message, AUTHENTICATE_VERSION, SaslAuthenticateResponse, then)
            return
        span = login.session_ms / 1000 * OF_A_SESSION
        self._login_until = self._clock.monotonic() + span if span > 0 else NEVER
        self._send_next()

    def _check_deadlines(self) -> None:
        """Check the deadline. One timer serves many requests: most have been answered when it fires."""
        self._alarm = None
        if self._question is None:
            return
        if self._clock.monotonic() >= self._deadline:
            self._abandon(PeerLost("no response in time"))
        else:
            self._alarm = self._timers.schedule(self._deadline, self._check_deadlines)

    def _abandon(self, error: PeerLost) -> None:
        self._disconnect()
        self._fail(error)

    def _fail(self, error: PeerLost) -> None:
        self._expected = None
        question, self._question = self._question, None
        if question is not None:
            question.done(error)

    def _call_next(self, then: Callable[[Any], None], said: Message) -> None:
        """Handle a response. An error closes this connection and is reported to `done`; the loop continues."""
        question = self._question
        try:
            then(said)
        except Exception:
            log.exception("%s: handling a response of %s failed", self._client_id, self._address)
            self._question = question
            self._abandon(PeerLost("handling its response failed, as logged above"))

    def _disconnect(self) -> None:
        self._expected = self._pending_login = None
        if self._address is not None:
            self._selector.close(self)
            self._address = None
