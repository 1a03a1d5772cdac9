"""One conversation with somebody else of the cluster: a question, then its answer. For one thread.

Whom to ask, each question says; the connection is made for it, and again after the address has changed or the connection
ended. Where the listener asks for that it is encrypted and logged in first, and logged in again before the login ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.peers.split import Split, Splittable
from ottla.broker.settings.peer_security import PeerSecurity
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.network.channel import MakeChannel
from ottla.network.refusal import Refusal
from ottla.network.selector import Selector
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from ottla.protocol.schema import Message
from ottla.security.login import Login, LoginError
from ottla.security.security import WITH_LOGIN

M = TypeVar("M", bound=Message)
CONNECT_SECONDS = 5.0
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2
PEER = "peer"
NEVER = float("inf")
OF_A_SESSION = 0.85
"""After which part of its life a login is repeated (KIP-368)."""


def for_ever() -> bool:
    """Whoever is asked is the one to ask until it has answered."""
    return True


class PeerConnection(Splittable):
    """Blocks the thread that asks, for as long as it is told to."""

    def __init__(
        self,
        client_id: str,
        clock: Clock,
        security: PeerSecurity,
        logins: PeerLogins,
        make_channel: MakeChannel,
        split: Split,
    ) -> None:
        self._client_id = client_id
        self._clock = clock
        self._logins = logins
        self._selector = Selector(clock=clock, make_channel=make_channel)
        self._split = split
        self._address: Address | None = None
        self._correlation_id = 0
        self._closed = False
        self._logs_in = security.config.security_protocol in WITH_LOGIN
        self._login_until = NEVER
        self._still = for_ever
        split.add(self)

    def ask(
        self,
        address: Address,
        request: Message,
        version: int,
        answer: type[M],
        seconds: float,
        still: Callable[[], bool] = for_ever,
    ) -> M:
        """The answer; PeerLost where none comes in time, or it is another by now who is to be asked, which is looked at upon `wakeup`."""
        self._still = still
        deadline = self._clock.monotonic() + seconds
        self._await_way(address, deadline)
        if address != self._address:
            self._connect(address, min(seconds, CONNECT_SECONDS), deadline)
        elif self._clock.monotonic() >= self._login_until:
            self._log_in(deadline)
        return self._exchange(request, version, answer, deadline)

    def wait(self, seconds: float | None) -> None:
        """Do nothing for so long, or until `wakeup`; the end of the connection is noticed."""
        self._selector.poll(seconds)
        if self._selector.disconnected:
            self._address = None

    def wakeup(self) -> None:
        """End the present or the next `wait`; from any thread."""
        self._selector.wakeup()

    def give_up(self) -> None:
        """Have whoever asks be answered with PeerLost, from now on; from any thread."""
        self._closed = True
        self._selector.wakeup()

    def split_changed(self) -> None:
        self._selector.wakeup()

    def close(self) -> None:
        self._selector.close_all()

    def _await_way(self, address: Address, deadline: float) -> None:
        while self._split.hides(address):
            self._wait_for_news(deadline)

    def _connect(self, address: Address, span: float, deadline: float) -> None:
        self._hang_up()
        self._address = address
        self._selector.connect(PEER, address.host, address.port, timeout=span)
        if self._logs_in:
            self._log_in(deadline)

    def _log_in(self, deadline: float) -> None:
        """Say who this is; PeerRefused where that does not help."""
        login = self._begun_login(deadline)
        message: SaslAuthenticateRequest | None
        try:
            hands = self._exchange(login.first(), HANDSHAKE_VERSION, SaslHandshakeResponse, deadline)
            message = login.next(hands)
            while message is not None:
                message = login.next(self._exchange(message, AUTHENTICATE_VERSION, SaslAuthenticateResponse, deadline))
        except LoginError as error:
            self._hang_up()
            raise PeerRefused(str(error)) from None
        span = login.session_ms / 1000 * OF_A_SESSION
        self._login_until = self._clock.monotonic() + span if span > 0 else NEVER

    def _begun_login(self, deadline: float) -> Login:
        assert self._address is not None
        begun = self._logins.begin(self._address.host, self._selector.wakeup)
        try:
            while (login := begun.login()) is None:
                self._wait_for_news(deadline)
                self._check_connected()
        except PeerLost:
            self._hang_up()  # or the next question would go out without a login
            raise
        return login

    def _exchange(self, request: Message, version: int, answer: type[M], deadline: float) -> M:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._selector.send(PEER, encode_request(request, version, self._correlation_id, self._client_id))
        correlation_id, message = decode_response(answer, version, self._frame(deadline))
        if correlation_id != self._correlation_id:
            address = self._address
            self._hang_up()
            raise PeerLost(f"{address} answered {correlation_id} where {self._correlation_id} was due")
        return message

    def _frame(self, deadline: float) -> memoryview:
        while True:
            self._wait_for_news(deadline)
            for _, frame in self._selector.completed_receives:
                return frame
            self._check_connected()

    def _check_connected(self) -> None:
        """PeerLost where the connection has just ended."""
        for reason in self._selector.disconnected.values():
            self._address = None
            refused = isinstance(reason, Refusal)
            raise (PeerRefused if refused else PeerLost)(reason or "the connection was closed on the other side")

    def _wait_for_news(self, deadline: float) -> None:
        """PeerLost when it is too late; nothing is heard of who is split off."""
        left = deadline - self._clock.monotonic()
        if self._closed or left <= 0:
            self._hang_up()
            raise PeerLost("nothing came in time")
        if not self._still():
            self._hang_up()
            raise PeerLost("another is to be asked by now")
        is_hidden = self._address is not None and self._split.hides(self._address)
        (self._selector.mute if is_hidden else self._selector.unmute)(PEER)
        self._selector.poll(left)

    def _hang_up(self) -> None:
        if self._address is not None:
            self._selector.close(PEER)
            self._address = None
