"""A connection to another broker in the event loop, for each security protocol and for faulty peers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.peers.peer_connection import ANSWER_SECONDS, LOOK_SECONDS, PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.peers.peer_login import PeerLogins, PendingLogin
from ottla.broker.peers.peers import Peers
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.clock import ManualClock
from ottla.coordination.quorum.observer import Address
from ottla.network.selector import Selector
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.broker.own_connections import turn
from tests.broker.security.secured import PASSWORD, USER, Secured
from tests.broker.security.test_peers import JOINING, line
from tests.patience import eventually


class Loop:
    """A manual event loop with a connection, and the responses."""

    def __init__(self, config: BrokerConfig) -> None:
        self.clock, self.timers, self.heard = ManualClock(), Timers(), list[Any]()
        self.selector = Selector()
        peers = Peers(config, self.clock)
        self.split = peers.split
        self.connection: PeerConnection = peers.connect_to_broker("me", self.selector, self.timers)

    def ask(self, address: Address) -> None:
        question = Question(address, DescribeClusterRequest(), 1, DescribeClusterResponse, self.heard.append)
        self.connection.send_request(question)

    def turn(self) -> None:
        turn(self.selector)
        self.timers.run(self.clock.monotonic())

    def answer(self, address: Address) -> Any:
        """Return the result of a request."""
        self.ask(address)
        return self.next()

    def next(self) -> Any:
        def heard() -> bool:
            self.turn()
            return bool(self.heard)

        eventually(heard)
        return self.heard.pop(0)

    def close(self) -> None:
        self.connection.close()
        self.selector.close_all()


class Stranger:
    """A server that sends the bytes of the test."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self._peers: list[socket.socket] = []

    def accept(self) -> socket.socket:
        peer, _ = self._listener.accept()
        self._peers.append(peer)
        return peer

    def close(self) -> None:
        for each in (self._listener, *self._peers):
            each.close()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    stranger = Stranger()
    yield stranger
    stranger.close()


@pytest.fixture
def plain() -> Iterator[Loop]:
    loop = Loop(BrokerConfig())
    yield loop
    loop.close()


def test_a_connection_ignores_the_end_of_the_previous_one(plain: Loop, stranger: Stranger) -> None:
    def ask_again(heard: Any) -> None:
        plain.heard.append(heard)
        plain.ask(stranger.address)

    plain.connection.send_request(
        Question(stranger.address, DescribeClusterRequest(), 1, DescribeClusterResponse, ask_again)
    )
    plain.turn()
    stranger.accept()
    plain.connection.handle_frame(memoryview(b"no answer"))  # and the peer closes the connection in the same turn:
    plain.connection.handle_closed("")
    assert [type(each) for each in plain.heard] == [PeerLost]
    assert plain.selector.channel(plain.connection) is not None


def config_towards(secured: Secured, protocol: str, mechanism: str, password: str = PASSWORD) -> BrokerConfig:
    """The configuration of a broker whose peers are reached through INTERNAL, with the security of one of our
    listeners.
    """
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    made = secured.authority.certificate("me")
    return read_config(
        JOINING
        | {
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,INTERNAL:{protocol},PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "sasl.enabled.mechanisms": mechanism,
            "sasl.mechanism.inter.broker.protocol": mechanism,
            f"listener.name.internal.{mechanism.lower()}.sasl.jaas.config": line(USER, password, module),
            "listener.name.internal.ssl.truststore.location": secured.authority.file,
            "listener.name.internal.ssl.keystore.location": secured.authority.write("me.pem", made.chain + made.key),
        }
    )


def address_of(secured: Secured, listener: str) -> Address:
    host, _, port = secured.broker.addresses[listener].rpartition(":")
    return Address(host, int(port))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_connection_is_encrypted_and_authenticated_as_configured(secured: Secured, protocol: str) -> None:
    loop = Loop(config_towards(secured, protocol, "SCRAM-SHA-512"))
    for _ in range(2):
        said = loop.answer(address_of(secured, protocol))
        assert [broker.broker_id for broker in said.brokers] == [1]
    loop.close()


def test_a_wrong_password_is_a_one_line_error(secured: Secured) -> None:
    loop = Loop(config_towards(secured, "SASL_SSL", "PLAIN", "n0pe"))
    for _ in range(2):
        said = loop.answer(address_of(secured, "SASL_SSL"))
        assert isinstance(said, PeerRefused)
        assert str(said).startswith(f"it rejected the login by PLAIN as {USER!r}: ")
    loop.close()


def test_requests_wait_for_a_login_that_needs_a_ticket_of_a_kdc(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, late = PeerLogins.start_login, PendingLogin()
    monkeypatch.setattr(PeerLogins, "start_login", lambda *_: late)
    loop, address = Loop(config_towards(secured, "SASL_SSL", "SCRAM-SHA-256")), address_of(secured, "SASL_SSL")
    loop.ask(address)
    for _ in range(3):
        loop.clock.advance(LOOK_SECONDS)
        loop.turn()
    assert not loop.heard
    late.complete(PeerLost("no KDC"))
    loop.clock.advance(LOOK_SECONDS)
    assert str(loop.next()) == "no KDC"
    monkeypatch.setattr(PeerLogins, "start_login", begin)
    assert loop.answer(address).brokers
    loop.close()


def test_a_login_that_could_not_start_is_reported_after_the_request_call_returns(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PeerLogins, "start_login", lambda *_: PendingLogin(PeerRefused("no ticket")))
    loop, address = Loop(config_towards(secured, "SASL_SSL", "SCRAM-SHA-256")), address_of(secured, "SASL_SSL")
    loop.ask(address)
    assert not loop.heard
    loop.clock.advance(LOOK_SECONDS)
    assert isinstance(loop.next(), PeerRefused)
    loop.ask(address)
    loop.close()  # which ends the waiting as well
    loop.clock.advance(LOOK_SECONDS)
    loop.timers.run(loop.clock.monotonic())
    assert not loop.heard


def test_a_login_is_repeated_before_the_session_expires(secured: Secured) -> None:
    loop = Loop(config_towards(secured, "SASL_SSL", "SCRAM-SHA-256"))
    address = address_of(secured, "SASL_SSL")
    assert loop.answer(address).brokers
    loop.connection._login_until = loop.clock.monotonic()
    assert loop.answer(address).brokers
    assert loop.connection._login_until > loop.clock.monotonic()
    loop.close()


def test_a_peer_that_disconnects_is_reported_lost_and_another_can_be_queried(
    plain: Loop, secured: Secured, stranger: Stranger
) -> None:
    plain.ask(stranger.address)
    stranger.accept().close()
    assert isinstance(plain.next(), PeerLost)
    stranger.close()
    assert isinstance(plain.answer(stranger.address), PeerLost)  # the port is closed
    assert plain.answer(address_of(secured, "PLAINTEXT")).brokers


def test_a_silent_peer_is_abandoned_after_the_request_timeout(plain: Loop, stranger: Stranger) -> None:
    plain.ask(stranger.address)
    plain.turn()
    plain.clock.advance(ANSWER_SECONDS - 1)
    plain.turn()
    assert not plain.heard
    plain.clock.advance(1)
    plain.turn()
    (said,) = plain.heard
    assert str(said) == "no response in time"


def test_each_request_has_its_own_timeout(plain: Loop, secured: Secured, stranger: Stranger) -> None:
    assert plain.answer(address_of(secured, "PLAINTEXT")).brokers
    plain.clock.advance(ANSWER_SECONDS - 1)
    plain.ask(stranger.address)
    plain.clock.advance(ANSWER_SECONDS - 1)
    plain.turn()
    assert not plain.heard
    plain.clock.advance(1)
    plain.turn()
    assert isinstance(plain.heard[0], PeerLost)


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\0\0\7\0", b"\0\0\0\1", b"\0\0\0\1" + b"\xff" * 40])
def test_a_malformed_response_is_reported_as_a_lost_connection(plain: Loop, stranger: Stranger, frame: bytes) -> None:
    plain.ask(stranger.address)
    stranger.accept().sendall(len(frame).to_bytes(4, "big") + frame)
    assert isinstance(plain.next(), PeerLost)


def test_an_unrequested_response_closes_the_connection(plain: Loop, secured: Secured, stranger: Stranger) -> None:
    assert plain.answer(address_of(secured, "PLAINTEXT")).brokers
    plain.connection.handle_frame(memoryview(b"\0\0\0\1"))
    assert plain.answer(address_of(secured, "PLAINTEXT")).brokers
    assert not plain.heard


def test_a_response_that_the_caller_fails_to_process_is_reported_as_lost(plain: Loop, secured: Secured) -> None:
    heard: list[object] = []

    def done(said: object) -> None:
        heard.append(said)
        assert isinstance(said, PeerLost)

    plain.connection.send_request(
        Question(address_of(secured, "PLAINTEXT"), DescribeClusterRequest(), 1, DescribeClusterResponse, done)
    )

    def is_told() -> bool:
        plain.turn()
        return len(heard) == 2

    eventually(is_told)
    assert plain.answer(address_of(secured, "PLAINTEXT")).brokers


def test_nothing_is_reported_after_close(plain: Loop, stranger: Stranger) -> None:
    plain.ask(stranger.address)
    peer = stranger.accept()
    plain.connection.close()
    plain.turn()
    peer.settimeout(30)
    while peer.recv(1 << 16):
        pass
    plain.clock.advance(ANSWER_SECONDS)
    plain.turn()
    assert not plain.heard
