"""Controllers with authentication by certificates, or by users and passwords of their settings."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla import Cluster, Producer
from ottla.errors import ConfigError
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.cluster_nodes import counted
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire
from tests.certificates import Authority, Certificate
from tests.patience import eventually

pytestmark = pytest.mark.heavy

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LINE = f'{PLAIN} username="node" password="n0de" user_node="n0de" user_other="0ther";'


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def mutual(authority: Authority) -> dict[str, str]:
    """The settings of nodes that authenticate with certificates on CONTROLLER, in both directions."""
    made = authority.certificate()
    name = "listener.name.controller.ssl"
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        f"{name}.keystore.type": "PEM",
        f"{name}.keystore.location": authority.write("node.pem", made.chain + made.key),
        f"{name}.truststore.type": "PEM",
        f"{name}.truststore.location": authority.file,
        f"{name}.client.auth": "required",
    }


def by_password(line: str = LINE) -> dict[str, str]:
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": line,
    }


@contextmanager
def alone(folder: Path, settings: Mapping[str, str]) -> Iterator[Place]:
    """A controller that votes for itself."""
    (host,) = new_hosts(1)
    place = Place(folder, 1, host)
    place.settings |= settings
    place.format([place.voter])
    with place.serving():
        yield place


def story(settings: Mapping[str, str]) -> None:
    """Restart the active controller of three nodes."""
    with Cluster(**settings) as cluster, Producer(cluster.client_settings(), acks="all") as producer:  # type: ignore[arg-type]
        producer.send("kept", b"before").result(60)
        cluster.kill(1)
        producer.send("kept", b"without 1").result(60)
        cluster.start(1)
        cluster.kill(2)
        producer.send("kept", b"without 2").result(60)
        cluster.start(2)
        assert counted(cluster.bootstrap_servers, "kept", 3) == {b"before": 1, b"without 1": 1, b"without 2": 1}


def test_nodes_that_authenticate_with_certificates_form_a_cluster(authority: Authority) -> None:
    story(mutual(authority))


def test_nodes_that_authenticate_with_passwords_form_a_cluster() -> None:
    story(by_password())


def test_a_node_without_a_certificate_is_rejected(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with alone(tmp_path, mutual(authority)) as place:
        assert answers(place, authority, authority.certificate())
        for certificate in (None, Authority(tmp_path / "..").certificate()):
            assert not answers(place, authority, certificate)
        with Wire(place.address) as plain, pytest.raises((EOFError, ConnectionError)):
            plain.ask(ApiVersionsRequest("test", "1"))
        eventually(lambda: caplog.text.count("the connection from 127.") >= 3)


def answers(place: Place, authority: Authority, certificate: Certificate | None) -> bool:
    """True if a client with this certificate gets a response."""
    context = ssl.create_default_context(cadata=authority.pem)
    context.check_hostname = False
    if certificate is not None:
        certificate.made.configure_cert(context)
    try:
        with Wire(place.address) as client:
            client.socket = context.wrap_socket(client.socket)
            client.ask(ApiVersionsRequest("test", "1"))
    except (EOFError, OSError):
        return False
    return True


def test_only_authenticated_requests_are_answered(tmp_path: Path) -> None:
    with alone(tmp_path, by_password()) as place:
        with Wire(place.address) as stranger, pytest.raises((EOFError, ConnectionError)):
            stranger.ask(DescribeQuorumRequest())
        with Wire(place.address) as known:
            assert logged_in(known, b"\0other\0000ther") == 0
            assert hasattr(known.ask(DescribeQuorumRequest()), "topics")
        with Wire(place.address) as guessing:
            assert logged_in(guessing, b"\0other\0wrong") == 58
            with pytest.raises((EOFError, ConnectionError)):
                guessing.ask(DescribeQuorumRequest())


def logged_in(client: Wire, message: bytes) -> int:
    assert client.ask(SaslHandshakeRequest("PLAIN")).error_code == 0
    code: int = client.ask(SaslAuthenticateRequest(message)).error_code
    return code


def test_a_mechanism_that_a_controller_cannot_verify_is_rejected_at_startup(tmp_path: Path) -> None:
    settings = by_password() | {"listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
    with pytest.raises(ConfigError, match="it can check PLAIN alone"), alone(tmp_path, settings):
        pass
