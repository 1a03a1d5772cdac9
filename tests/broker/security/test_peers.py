"""The connections of a broker to listeners of controllers and other brokers, as configured, and against a real
listener.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.peers.peer_connection import Question
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.peers.peer_login import PeerLogins, PendingLogin
from ottla.broker.peers.peers import Peers
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.broker.settings.peer_security import towards_brokers, towards_controllers
from ottla.clock import SystemClock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ConfigError
from ottla.network.selector import Selector
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.broker.own_connections import turn
from tests.broker.security.secured import LISTED, LISTED_PASSWORD, PASSWORD, PROTOCOLS, USER, Secured
from tests.certificates import Authority
from tests.patience import eventually

JAAS = "org.apache.kafka.common.security."
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
SECONDS = 10.0
JOINING = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "INTERNAL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "log.dirs": "/d",
}


def line(name: str, password: str, module: str = "plain.PlainLoginModule") -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{JAAS}{module} required username="{name}" password="{quoted}" user_{name}="{quoted}";'


def joining(protocols: str = "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT", **settings: str) -> BrokerConfig:
    given = {name.replace("__", "-").replace("_", "."): value for name, value in settings.items()}
    return read_config({**JOINING, "listener.security.protocol.map": protocols, **given})


def refused(**settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        joining(**settings)
    return str(caught.value)


def test_without_security_settings_all_nodes_use_plaintext() -> None:
    config = joining()
    assert towards_controllers(config).config.security_protocol == "PLAINTEXT"
    assert towards_brokers(config).listener == "PLAINTEXT"


def test_controllers_are_reached_through_their_first_listener_and_its_settings() -> None:
    protocols = "CONTROLLER:SASL_SSL,INTERNAL:PLAINTEXT"
    settings = {
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": line("me", 's3"cret'),
        "listener.name.controller.ssl.truststore.location": "/ca.pem",
        "listener.name.internal.ssl.truststore.location": "/other.pem",
    }
    config = read_config({**JOINING, "listener.security.protocol.map": protocols, **settings})
    security = towards_controllers(config).config
    assert (security.security_protocol, security.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert security.ssl_truststore_location == "/ca.pem"
    assert security.sasl_jaas_config is not None
    assert 's3\\"cret' in security.sasl_jaas_config.value


def test_brokers_are_reached_through_the_named_inter_broker_listener() -> None:
    config = joining("CONTROLLER:PLAINTEXT,INTERNAL:SSL", inter_broker_listener_name="internal")
    assert towards_brokers(config)[:1] == ("INTERNAL",)
    assert towards_brokers(config).config.security_protocol == "SSL"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"protocols": "CONTROLLER:SASL_SSL,INTERNAL:PLAINTEXT"},
            "sasl.mechanism.controller.protocol = GSSAPI is Kerberos, by Kafka's default, and needs keys (or set one of "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512): set listener.name.controller.gssapi.sasl.jaas.config",
        ),
        (
            {
                "protocols": "CONTROLLER:SASL_SSL,INTERNAL:PLAINTEXT",
                "sasl_mechanism_controller_protocol": "OAUTHBEARER",
            },
            "sasl.mechanism.controller.protocol = OAUTHBEARER: listener CONTROLLER has protocol SASL_SSL, and this broker can authenticate "
            "there by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI; set one of them",
        ),
        (
            {
                "protocols": "CONTROLLER:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
                "listener_name_controller_gssapi_sasl_jaas_config": f'{KRB5} useKeyTab=true keyTab="/k" principal="*";',
            },
            "listener.name.controller.gssapi.sasl.jaas.config: has no principal, and this broker authenticates to other nodes; set "
            'principal="kafka/HOST@REALM" in it',
        ),
        (
            {
                "protocols": "CONTROLLER:PLAINTEXT,INTERNAL:SASL_SSL",
                "inter_broker_listener_name": "INTERNAL",
                "sasl_mechanism_inter_broker_protocol": "GSSAPI",
            },
            "sasl.mechanism.inter.broker.protocol = GSSAPI: other brokers could not authenticate on listener INTERNAL, "
            "with sasl.enabled.mechanisms = SCRAM-SHA-256,SCRAM-SHA-512; add it there",
        ),
        (
            {
                "protocols": "CONTROLLER:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
                "sasl_mechanism_controller_protocol": "PLAIN",
            },
            "sasl.mechanism.controller.protocol = PLAIN needs a name and a password to log in with: set "
            "listener.name.controller.plain.sasl.jaas.config",
        ),
        (
            {
                "protocols": "CONTROLLER:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
                "sasl_mechanism_controller_protocol": "PLAIN",
                "listener_name_controller_plain_sasl_jaas_config": f'{JAAS}plain.PlainLoginModule required user_a="b";',
            },
            'listener.name.controller.plain.sasl.jaas.config: needs a username; set username="…" in it',
        ),
        (
            {"inter_broker_listener_name": "ELSEWHERE"},
            "inter.broker.listener.name = ELSEWHERE: unknown listener for connections between brokers: set "
            "inter.broker.listener.name to one of INTERNAL, PLAINTEXT",
        ),
        (
            {"security_inter_broker_protocol": "SSL"},
            "security.inter.broker.protocol = SSL: unknown listener for connections between brokers: set "
            "inter.broker.listener.name to one of INTERNAL, PLAINTEXT",
        ),
        (
            {"inter_broker_listener_name": "INTERNAL", "security_inter_broker_protocol": "SSL"},
            "inter.broker.listener.name = INTERNAL and security.inter.broker.protocol = SSL exclude each other: the protocol "
            "comes from listener.security.protocol.map; remove the second",
        ),
        (
            {
                "protocols": "CONTROLLER:PLAINTEXT,INTERNAL:SASL_SSL",
                "inter_broker_listener_name": "INTERNAL",
                "sasl_mechanism_inter_broker_protocol": "PLAIN",
            },
            "sasl.mechanism.inter.broker.protocol = PLAIN: other brokers could not authenticate on listener INTERNAL, "
            "with sasl.enabled.mechanisms = SCRAM-SHA-256,SCRAM-SHA-512; add it there",
        ),
        (
            {"protocols": "INTERNAL:PLAINTEXT"},
            "listener CONTROLLER has no security protocol: add it to listener.security.protocol.map, such as CONTROLLER:PLAINTEXT",
        ),
    ],
)
def test_incompatible_settings_are_a_one_line_error(settings: dict[str, str], sentence: str) -> None:
    assert refused(**settings) == sentence


def config_towards(
    secured: Secured, listener: str, mechanism: str, name: str, password: str, **more: str
) -> BrokerConfig:
    """The configuration of a broker whose controllers have the security of one of our listeners."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    settings = {
        "listener.security.protocol.map": f"CONTROLLER:{PROTOCOLS[listener]},INTERNAL:PLAINTEXT",
        "sasl.mechanism.controller.protocol": mechanism,
        f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": line(name, password, module),
        "listener.name.controller.ssl.truststore.location": secured.authority.file,
    }
    return read_config({**JOINING, **settings, **more})


class Conversation:
    """A connection to a controller, and the loop in which it is."""

    def __init__(self, config: BrokerConfig) -> None:
        self._selector, self._timers, self._clock = Selector(), Timers(), SystemClock()
        self.connection = Peers(config, self._clock).connect_to_controller("me", self._selector, self._timers)

    def ask(self, address: Address) -> DescribeClusterResponse:
        """Return the response; PeerLost states why there is none."""
        heard: list[Any] = []
        question = Question(address, DescribeClusterRequest(), 1, DescribeClusterResponse, heard.append)
        self.connection.send_request(question)

        def has_heard() -> bool:
            turn(self._selector)
            self._timers.run(self._clock.monotonic())
            return bool(heard)

        eventually(has_heard)
        (said,) = heard
        if isinstance(said, PeerLost):
            raise said
        assert isinstance(said, DescribeClusterResponse)
        return said

    def close(self) -> None:
        self.connection.close()
        self._selector.close_all()


@contextmanager
def conversation(config: BrokerConfig) -> Iterator[Conversation]:
    conversation = Conversation(config)
    try:
        yield conversation
    finally:
        conversation.close()


def describe_cluster(conversation: Conversation, secured: Secured, listener: str) -> DescribeClusterResponse:
    host, _, port = secured.broker.addresses[listener].rpartition(":")
    return conversation.ask(Address(host, int(port)))


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize(
    ("mechanism", "name", "password"),
    [("PLAIN", LISTED, LISTED_PASSWORD), ("SCRAM-SHA-256", USER, PASSWORD), ("SCRAM-SHA-512", USER, PASSWORD)],
)
def test_a_node_logs_in_and_gets_a_response(
    secured: Secured, listener: str, mechanism: str, name: str, password: str
) -> None:
    if (listener, mechanism) == ("SASL_PLAINTEXT", "PLAIN"):
        name, password = USER, PASSWORD  # the line with the other is the first listener's
    with conversation(config_towards(secured, listener, mechanism, name, password)) as connection:
        for _ in range(2):
            assert [broker.broker_id for broker in describe_cluster(connection, secured, listener).brokers] == [1]


def test_no_request_is_sent_after_a_login_that_could_not_start(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with conversation(config_towards(secured, "SASL_SSL", "PLAIN", LISTED, LISTED_PASSWORD)) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(PeerLogins, "start_login", lambda *_: PendingLogin(PeerLost("no KDC")))
            with pytest.raises(PeerLost, match="no KDC"):
                describe_cluster(connection, secured, "SASL_SSL")
        assert describe_cluster(connection, secured, "SASL_SSL").brokers


def test_a_node_presents_its_certificate_if_required(secured: Secured) -> None:
    made = secured.authority.certificate("me")
    mine = secured.authority.write("broker.pem", made.chain + made.key)
    config = config_towards(
        secured, "MUTUAL", "PLAIN", USER, PASSWORD, **{"listener.name.controller.ssl.keystore.location": mine}
    )
    with conversation(config) as connection:
        assert describe_cluster(connection, secured, "MUTUAL").brokers


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_a_one_line_error_at_once(secured: Secured, mechanism: str) -> None:
    begun = time.monotonic()
    config = config_towards(secured, "SASL_SSL", mechanism, USER, "n0pe")
    with conversation(config) as connection, pytest.raises(PeerRefused) as caught:
        describe_cluster(connection, secured, "SASL_SSL")
    sentence = str(caught.value)
    assert sentence.startswith(f"it rejected the login by {mechanism} as {USER!r}: ")
    assert sentence.endswith(
        f"; check the name and password in listener.name.controller.{mechanism.lower()}.sasl.jaas.config"
    )
    assert "n0pe" not in sentence
    assert time.monotonic() - begun < SECONDS / 2


def test_an_untrusted_certificate_is_rejected(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> None:
    others = Authority(tmp_path_factory.mktemp("others"))
    config = config_towards(
        secured, "SSL", "PLAIN", USER, PASSWORD, **{"listener.name.controller.ssl.truststore.location": others.file}
    )
    with conversation(config) as connection, pytest.raises(PeerRefused, match="certificate"):
        describe_cluster(connection, secured, "SSL")


def test_a_login_is_repeated_before_the_session_expires(secured: Secured) -> None:
    with conversation(config_towards(secured, "SASL_SSL", "SCRAM-SHA-256", USER, PASSWORD)) as connection:
        assert describe_cluster(connection, secured, "SASL_SSL").brokers
        connection.connection._login_until = 0.0
        assert describe_cluster(connection, secured, "SASL_SSL").brokers
        assert connection.connection._login_until > time.monotonic()


def test_a_listener_without_authentication_is_named_in_the_error(secured: Secured) -> None:
    config: Any = config_towards(secured, "SASL_PLAINTEXT", "PLAIN", USER, PASSWORD)
    with conversation(config) as connection, pytest.raises(PeerRefused) as caught:
        describe_cluster(connection, secured, "PLAINTEXT")
    assert str(caught.value).endswith("set the protocol of CONTROLLER in listener.security.protocol.map")
