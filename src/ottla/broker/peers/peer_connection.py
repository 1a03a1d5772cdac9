"""One connection to another node of the cluster, in the event loop: a request, then its response; nothing blocks in between.

    ask ──► connected, logged in ──► sent ──► the frame that comes ──► done(response)
                     the connection ends, or nothing comes in time ──► done(PeerLost)

The loop's selector knows the connection by this object, and the loop hands it its frames. `done` is never called within `ask`.
A request names the address: the connection is opened for it, and again if the address has changed or the connection
has ended. Where the listener requires it, the connection is encrypted and logged in first, and logged in again before the
session ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.peers.own_connection import OwnConnection
from ottla.broker.peers.peer_errors import PeerGone, PeerLost, PeerRefused
from ottla.broker.peers.peer_login import BegunLogin, PeerLogins
from ottla.broker.peers.split import Split, Splittable
from ottla.broker.settings.peer_security import PeerSecurity
from ottla.broker.timers import Timer, Timers
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ProtocolError
from ottla.network.channel import MakeChannel
from ottla.network.refusal import NobodyThere, Refusal
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
"""After which the loop looks again whether a KDC has answered, which takes it a moment."""


KINDS: dict[type[str], type[PeerLost]] = {Refusal: PeerRefused, NobodyThere: PeerGone}
"""The error for each kind of reason for which a connection was lost."""


class Question(NamedTuple):
    address: Address
    request: Message
    version: int
    answer: type[Message]
    done: Callable[[Any], None]
    """Called with the answer, or with PeerLost."""


class Expected(NamedTuple):
    """The response that is expected next."""

    correlation_id: int
    version: int
    answer: type[Message]
    then: Callable[[Any], None]


class PeerConnection(OwnConnection, Splittable):
    """One question at a time. Belongs to the loop."""

    def __init__(
        self,
        client_id: str,
        selector: Selector,
        timers: Timers,
        clock: Clock,
        security: PeerSecurity,
        logins: PeerLogins,
        make_channel: MakeChannel,
        split: Split,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """A request that is not answered within `answer_seconds` counts as lost."""
        self._client_id = client_id
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._logins = logins
        self._begun: BegunLogin | None = None
        """For which a KDC is being asked."""
        self._make_channel = make_channel
        self._split = split
        self._answer_seconds = answer_seconds
        split.add(self)
        self._logs_in = security.config.security_protocol in WITH_LOGIN
        self._login_until = NEVER
        self._address: Address | None = None
        """To which a connection is open, or being made."""
        self._question: Question | None = None
        self._expected: Expected | None = None
        self._correlation_id = 0
        self._deadline = NEVER
        self._alarm: Timer | None = None

    def ask(self, question: Question) -> None:
        """Put a question; the one before must have been answered."""
        assert self._question is None, "one at a time"
        self._question = question
        self._deadline = self._clock.monotonic() + self._answer_seconds
        if self._alarm is None:
            self._alarm = self._timers.at(self._deadline, self._look_at_the_clock)
        if question.address != self._address:
            self._connect(question.address)
        elif self._login_until < NEVER and self._clock.monotonic() >= self._login_until:
            self._log_in()
        else:
            self._put()

    def take(self, frame: memoryview) -> None:
        expected, self._expected = self._expected, None
        try:
            if expected is None:
                raise ProtocolError("it says something that it was not asked for")
            correlation_id, message = decode_response(expected.answer, expected.version, frame)
            if correlation_id != expected.correlation_id:
                raise ProtocolError(f"it answered {correlation_id} where {expected.correlation_id} was due")
        except ProtocolError as error:
            self._give_up(PeerLost(str(error)))
        else:
            self._go_on_with(expected.then, message)

    def part(self, reason: str) -> None:
        if self._selector.channel(self) is not None:
            return  # it concerns an earlier connection: in the same turn a response came, and the next request went elsewhere
        self._address = self._begun = None
        kind = next((kind for why, kind in KINDS.items() if isinstance(reason, why)), PeerLost)
        self._fail(kind(reason or "the connection was closed on the other side"))

    def split_changed(self) -> None:
        question = self._question
        if self._address is None:
            if question is not None and not self._split.hides(question.address):
                self._connect(question.address)
        elif not self._split.hides(self._address):
            self._selector.uncork(self)
            self._selector.unmute(self)
        elif self._is_connecting():
            self._hang_up()
        else:
            self._selector.mute(self)
            self._selector.cork(self)

    def close(self) -> None:
        """Close the connection; `done` of the request under way is not called."""
        self._question = None
        self._hang_up()
        if self._alarm is not None:
            self._timers.cancel(self._alarm)
            self._alarm = None

    def _connect(self, address: Address) -> None:
        self._hang_up()
        if self._split.hides(address):
            self._wait_for_way()
            return
        self._address = address
        self._selector.connect(self, address.host, address.port, timeout=CONNECT_SECONDS, how=self._make_channel)
        if self._logs_in:
            self._log_in()
        else:
            self._put()

    def _wait_for_way(self) -> None:
        """Wait as long as for a connection; `split_changed` opens it when the address is reachable again."""
        self._deadline = min(self._deadline, self._clock.monotonic() + CONNECT_SECONDS)
        if self._alarm is not None:
            self._timers.cancel(self._alarm)
        self._alarm = self._timers.at(self._deadline, self._look_at_the_clock)

    def _is_connecting(self) -> bool:
        channel = self._selector.channel(self)
        return channel is not None and channel.connecting

    def _put(self) -> None:
        question = self._question
        assert question is not None
        self._send(question.request, question.version, question.answer, self._answered)

    def _answered(self, message: Message) -> None:
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
        self._begun = self._logins.begin(self._address.host, self._selector.wakeup)
        self._look_at_login(self._begun, at_first=True)

    def _look_at_login(self, begun: BegunLogin, *, at_first: bool = False) -> None:
        if begun is not self._begun:
            return  # the connection has ended meanwhile
        login, error = None, None
        try:
            login = begun.login()
        except PeerLost as lost:
            error = lost
        if login is not None:
            self._begun = None
            self._begin(login)
        elif error is None or at_first:  # `done` is not called within `ask`
            self._timers.at(self._clock.monotonic() + LOOK_SECONDS, lambda: self._look_at_login(begun))
        else:
            self._give_up(error)

    def _begin(self, login: Login) -> None:
        self._send(login.first(), HANDSHAKE_VERSION, SaslHandshakeResponse, lambda said: self._go_on(login, said))

    def _go_on(self, login: Login, said: Message) -> None:
        try:
            message = login.next(said)
        except LoginError as error:
            self._give_up(PeerRefused(str(error)))
            return
        if message is not None:
            then = lambda said: self._go_on(login, said)  # noqa: E731
            self._send(message, AUTHENTICATE_VERSION, SaslAuthenticateResponse, then)
            return
        span = login.session_ms / 1000 * OF_A_SESSION
        self._login_until = self._clock.monotonic() + span if span > 0 else NEVER
        self._put()

    def _look_at_the_clock(self) -> None:
        """Check the deadline. One alarm serves many requests: most have been answered when it goes off."""
        self._alarm = None
        if self._question is None:
            return
        if self._clock.monotonic() >= self._deadline:
            self._give_up(PeerLost("nothing came in time"))
        else:
            self._alarm = self._timers.at(self._deadline, self._look_at_the_clock)

    def _give_up(self, error: PeerLost) -> None:
        self._hang_up()
        self._fail(error)

    def _fail(self, error: PeerLost) -> None:
        self._expected = None
        question, self._question = self._question, None
        if question is not None:
            question.done(error)

    def _go_on_with(self, then: Callable[[Any], None], said: Message) -> None:
        """Handle a response. An error closes this connection and is reported to `done`; the loop goes on."""
        question = self._question
        try:
            then(said)
        except Exception:
            log.exception("%s: an answer of %s could not be taken in", self._client_id, self._address)
            self._question = question
            self._give_up(PeerLost("its answer could not be taken in, as logged above"))

    def _hang_up(self) -> None:
        self._expected = self._begun = None
        if self._address is not None:
            self._selector.close(self)
            self._address = None
