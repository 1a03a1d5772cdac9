"""Logins of a network client with a manual clock; the test plays the broker."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from ottla.client.admin.config import read_admin_settings
from ottla.client.metadata.metadata import Metadata
from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.network_sensors import write_network
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import ManualClock
from ottla.errors import ErrorCode, SaslAuthenticationError, SslAuthenticationError
from ottla.model import Node
from ottla.network.refusal import ClosedInHandshake, PeerRefusal
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.client.fake_selector import FakeSelector
from tests.protocol.sasl.scram_server import ScramServer

NODE = Node(1, "kafka.example.org", 9092)
PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
TOKENS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
ASKED = ListOffsetsRequest(replica_id=-1)


class Broker:
    """Accepts every connection and records the messages."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.session_ms = 0
        self.handshake = SaslHandshakeResponse(mechanisms=["PLAIN"])
        self.answers: Callable[[bytes], SaslAuthenticateResponse] = self.take
        self.silent = False

    def take(self, message: bytes) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(session_lifetime_ms=self.session_ms)

    def __call__(self, header: RequestHeader, request: Any) -> Any:
        self.said.append(request)
        match request:
            case ApiVersionsRequest():
                keys = [ApiVersion(a.key, a.versions.first, a.versions.last) for a in APIS.values()]
                return ApiVersionsResponse(api_keys=keys)
            case SaslHandshakeRequest():
                return self.handshake
            case SaslAuthenticateRequest():
                return self.answers(bytes(request.auth_bytes))
            case MetadataRequest():
                if self.silent:
                    return None
                return MetadataResponse(brokers=[MetadataResponseBroker(NODE.node_id, NODE.host, NODE.port)])
            case _:
                return ListOffsetsResponse()

    def kinds(self) -> list[str]:
        return [type(each).__name__.removesuffix("Request") for each in self.said]


class Story:
    """A client and its broker."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        self.broker = Broker()
        self.selector = FakeSelector(self.clock, self.broker)
        config = read_admin_settings({"bootstrap.servers": "boot:9092", **settings}, {})
        self.metadata = Metadata(
            bootstrap_nodes(config.bootstrap_servers), max_age_ms=1e12, backoff=ExponentialBackoff(100, 1000, Random(1))
        )
        self.client = NetworkClient(
            config,
            self.metadata,
            client_id="me",
            clock=self.clock,
            random=Random(1),
            selector=cast(Selector, self.selector),
        )
        self.done: list[ClientResponse] = []

    def poll(self, times: int = 1, timeout: float = 0.01) -> None:
        for _ in range(times):
            self.client.poll(timeout)

    def connected(self) -> Story:
        for _ in range(30):
            if self.client.ready(NODE, self.clock.monotonic()):
                return self
            self.poll()
        raise AssertionError(self.client.describe_trouble())

    def send(self) -> None:
        request = ClientRequest(NODE.node_id, ASKED, self.clock.monotonic(), 30_000, self.done.append)
        self.client.send(request, self.clock.monotonic())


def test_a_connection_logs_in_before_its_first_request() -> None:
    story = Story(**PLAIN).connected()
    said = [each for node, _, each in story.selector.requests if node == NODE.node_id]
    kinds = [type(each) for each in said]
    assert kinds == [ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest]
    assert said[1].mechanism == "PLAIN"
    assert bytes(said[2].auth_bytes) == b"\0u\0p"


def test_the_handshake_version_uses_sasl_authenticate_requests() -> None:
    story = Story(**PLAIN).connected()
    versions = {type(each): header.api_version for _, header, each in story.selector.requests}
    assert versions[SaslHandshakeRequest] == 1
    assert versions[SaslAuthenticateRequest] == 2


def test_scram_takes_several_round_trips() -> None:
    servers: list[ScramServer] = []  # a login of each connection
    story = Story(**{**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"})

    def answers(message: bytes) -> SaslAuthenticateResponse:
        if message.startswith(b"n,,"):
            servers.append(ScramServer("SCRAM-SHA-512", "u", "p"))
            return SaslAuthenticateResponse(auth_bytes=servers[-1].answer_first(message))
        (server,) = [
            each for each in servers if message.startswith(b"c=biws," + each.server_first.split(",")[0].encode())
        ]
        return SaslAuthenticateResponse(auth_bytes=server.answer_final(message))

    story.broker.answers = answers
    story.connected()


def test_scram_rejects_a_broker_that_does_not_prove_the_password() -> None:
    story = Story(**{**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"})
    story.poll(5)
    assert isinstance(story.metadata.fatal, SaslAuthenticationError)
    assert "login by SCRAM-SHA-512 failed" in str(story.metadata.fatal)


def test_a_failed_login_is_raised_at_once_and_not_retried_immediately() -> None:
    story = Story(**PLAIN)
    story.broker.answers = lambda message: SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no\x1b[31m such user"
    )
    story.poll(4)
    sentence = str(story.metadata.fatal)
    assert isinstance(story.metadata.fatal, SaslAuthenticationError)
    assert "it rejected the login by PLAIN as 'u': no?[31m such user; check sasl.username and sasl.password" in sentence
    logins = story.broker.kinds().count("SaslAuthenticate")
    story.poll(20)
    assert story.broker.kinds().count("SaslAuthenticate") == logins == 1
    story.clock.advance(11.0)
    story.poll(5)
    assert story.broker.kinds().count("SaslAuthenticate") == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "does not support sasl.mechanism = PLAIN; it supports OAUTHBEARER"),
        (ErrorCode.ILLEGAL_SASL_STATE, "requires no login; set security.protocol=PLAINTEXT"),
    ],
)
def test_an_unsupported_mechanism_is_an_error_that_lists_the_supported_ones(code: ErrorCode, message: str) -> None:
    story = Story(**PLAIN)
    story.broker.handshake = SaslHandshakeResponse(error_code=code, mechanisms=["OAUTHBEARER"])
    story.poll(4)
    assert message in str(story.metadata.fatal)
    assert "SaslAuthenticate" not in story.broker.kinds()


def test_a_rejection_is_raised_even_if_the_connection_ends_with_it() -> None:
    story = Story(**PLAIN)

    def refuse(message: bytes) -> SaslAuthenticateResponse:
        story.selector.end(-1)
        return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="wrong password")

    story.broker.answers = refuse
    story.poll(4)
    assert "wrong password" in str(story.metadata.fatal)


def count_requests(story: Story, node: Node, kind: type) -> int:
    return sum(isinstance(each, kind) for channel, _, each in story.selector.requests if channel == node.node_id)


def logins_at(story: Story, node: Node) -> int:
    return count_requests(story, node, SaslAuthenticateRequest)


def test_a_session_is_reauthenticated_before_its_end_and_during_traffic() -> None:
    story = Story(**PLAIN)
    story.broker.session_ms = 10_000
    story.connected()
    logins = logins_at(story, NODE)
    story.clock.advance(8.4)
    assert story.client.ready(NODE, story.clock.monotonic())
    story.send()
    story.clock.advance(1.2)
    assert not story.client.ready(NODE, story.clock.monotonic())
    assert logins_at(story, NODE) == logins  # first what is under way
    story.connected()
    assert [type(each.message) for each in story.done] == [ListOffsetsResponse]
    assert logins_at(story, NODE) == logins + 1
    assert count_requests(story, NODE, ApiVersionsRequest) == 1  # no connection was opened again


def test_a_session_of_less_than_a_second_is_not_reauthenticated_sooner_than_brokers_allow() -> None:
    story = Story(**PLAIN)
    story.broker.session_ms = 800
    story.connected()
    story.clock.advance(1.0)
    assert story.client.ready(NODE, story.clock.monotonic())
    story.clock.advance(0.2)
    assert not story.client.ready(NODE, story.clock.monotonic())


def test_the_least_loaded_node_may_be_a_broker_that_is_due_for_reauthentication() -> None:
    story = Story(**PLAIN)
    story.broker.session_ms = 10_000
    story.connected()
    story.clock.advance(9.9)
    assert story.client.least_loaded_node(story.clock.monotonic()) is not None
    story.connected()


def read_metric(story: Story, name: str) -> float:
    """A metric of its connections."""
    sheet = MetricsBuilder("me")
    write_network(sheet, "producer", [story.client.sensors], story.clock.monotonic())
    return sheet.build().value(name)


def test_logins_and_reauthentications_are_counted_separately() -> None:
    story = Story(**PLAIN)
    story.broker.session_ms = 10_000
    story.connected()
    first = read_metric(story, "successful-authentication-total")
    assert first >= logins_at(story, NODE) == 1
    assert read_metric(story, "successful-reauthentication-total") == 0
    story.clock.advance(9.9)
    story.connected()
    assert read_metric(story, "successful-authentication-total") == first
    again = story.broker.kinds().count("SaslAuthenticate") - first
    assert read_metric(story, "successful-reauthentication-total") == again >= 1
    assert read_metric(story, "reauthentication-latency-max") >= 0
    story.broker.answers = lambda message: SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="the password was changed"
    )
    story.clock.advance(9.9)
    story.client.ready(NODE, story.clock.monotonic())
    story.poll(3)
    assert read_metric(story, "failed-authentication-total") == 0
    assert read_metric(story, "failed-reauthentication-total") >= 1


def test_a_session_without_an_expiry_is_not_reauthenticated() -> None:
    story = Story(**PLAIN).connected()
    story.clock.advance(400.0)
    assert story.client.ready(NODE, story.clock.monotonic())


def test_a_failed_reauthentication_is_an_error_at_once() -> None:
    story = Story(**PLAIN)
    story.broker.session_ms = 10_000
    story.connected()
    story.broker.answers = lambda message: SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="the password was changed"
    )
    story.clock.advance(9.9)
    story.client.ready(NODE, story.clock.monotonic())
    story.poll(3)
    assert "the password was changed" in str(story.metadata.fatal)


def test_a_token_is_waited_for_without_blocking() -> None:
    import threading

    gate = threading.Event()

    def provider() -> str:
        gate.wait(30)
        return "token"

    story = Story(**{**TOKENS, "sasl.oauth.token.provider": provider})
    story.poll(5)
    assert "SaslHandshake" not in story.broker.kinds()
    gate.set()
    from tests.patience import eventually

    def logged_in() -> bool:
        story.poll()
        return story.client.ready(NODE, story.clock.monotonic())

    eventually(logged_in)
    assert any(b"auth=Bearer token" in bytes(x.auth_bytes) for x in story.broker.said if hasattr(x, "auth_bytes"))


def test_a_port_that_requires_a_login_is_an_error_that_names_the_settings() -> None:
    story = Story()
    story.broker.silent = True
    story.broker.handshake = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-512"]
    )
    story.poll(3)
    story.selector.end(-1)
    story.poll(20, 0.3)
    assert "set security.protocol=SASL_PLAINTEXT and sasl.mechanism=SCRAM-SHA-512" in str(story.metadata.fatal)


def test_a_port_without_a_login_is_used_as_before() -> None:
    story = Story()
    story.broker.silent = True
    story.broker.handshake = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    story.poll(3)
    story.selector.end(-1)
    story.broker.silent = False
    story.poll(20, 0.3)
    assert story.metadata.fatal is None
    assert story.metadata.version == 1


def test_a_failed_tls_handshake_has_its_own_error_class() -> None:
    story = Story()
    story.selector.refuse = PeerRefusal("the broker's certificate has expired: have it renewed")
    story.poll(2)
    assert isinstance(story.metadata.fatal, SslAuthenticationError)
    assert "boot:9092 (from bootstrap.servers): the broker's certificate has expired" in str(story.metadata.fatal)


def test_a_peer_that_closes_during_the_tls_handshake_is_probed_in_plaintext_without_credentials() -> None:
    story = Story(**PLAIN)
    story.selector.refuse = ClosedInHandshake("it hung up")
    story.poll(2)
    story.selector.refuse = ""
    story.clock.advance(1.0)
    story.poll(4)
    assert story.selector.plainly == [-1]
    assert story.broker.kinds() == ["ApiVersions"]
    assert "set security.protocol=PLAINTEXT" in str(story.metadata.fatal)
