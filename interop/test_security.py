"""Our clients at an Apache Kafka broker with TLS and SASL: each mechanism, and common mistakes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import KeySet

from interop.secured import (
    JAAS,
    PASSWORD,
    SESSION_MS,
    USER,
    client_store,
    quoted,
    secured_kafka,
)
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.aio import Consumer as AsyncConsumer
from ottla.aio import Producer as AsyncProducer
from ottla.errors import AuthenticationError, NoBrokersAvailableError, OttlaError
from rivals import apache_kafka as rival
from tests.broker.security.secured import KEY, lasting
from tests.certificates import Authority
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider

PATIENCE = 60.0
AT_ONCE = 10.0
Settings = dict[str, Any]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def kafka(authority: Authority, endpoint: IdentityProvider) -> Iterator[rival.ApacheKafka]:
    rival.fetch()
    with secured_kafka(authority, endpoint) as node:
        yield node


@pytest.fixture(scope="module")
def endpoint(authority: Authority) -> Iterator[IdentityProvider]:
    """A server that issues tokens to clients and serves the keys to Kafka."""
    with identity_provider(authority.server_context(), lasting, KeySet([KEY]).as_dict(private=False)) as running:
        yield running


WAYS = (
    "SSL",
    "MUTUAL",
    "PLAIN",
    "PLAIN in the clear",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "SCRAM by JAAS",
    "OAUTHBEARER by a function",
    "OAUTHBEARER by an endpoint",
    "OAUTHBEARER by an endpoint as RFC 6749 has it",
    "OAUTHBEARER by a file",
)


class Clients:
    """The client settings of each mechanism."""

    def __init__(self, kafka: rival.ApacheKafka, authority: Authority, endpoint: IdentityProvider) -> None:
        self.kafka, self.authority, self.endpoint = kafka, authority, endpoint

    def at(self, listener: str, protocol: str, **more: Any) -> Settings:
        tls = {"ssl.truststore.location": self.authority.file} if protocol.endswith("SSL") else {}
        return {"bootstrap.servers": self.kafka.listeners[listener], "security.protocol": protocol, **tls, **more}

    def login(self, mechanism: str, **more: Any) -> Settings:
        return {**self.at("SASL_SSL", "SASL_SSL"), "sasl.mechanism": mechanism, **more}

    def settings(self, way: str) -> Settings:
        named = {"sasl.username": USER, "sasl.password": PASSWORD}
        match way:
            case "SSL":
                return self.at("SSL", "SSL")
            case "MUTUAL":
                store = client_store(self.authority, self.authority.folder)
                return self.at("MUTUAL", "SSL") | {"ssl.keystore.location": store}
            case "PLAIN in the clear":
                return self.at("SASL_PLAINTEXT", "SASL_PLAINTEXT") | {"sasl.mechanism": "PLAIN"} | named
            case "SCRAM by JAAS":
                line = f'{JAAS}scram.ScramLoginModule required username="{USER}" password="{quoted(PASSWORD)}";'
                return self.login("SCRAM-SHA-512", **{"sasl.jaas.config": line})
            case "OAUTHBEARER by a function":
                return self.login("OAUTHBEARER", **{"sasl.oauth.token.provider": lambda: lasting(60)})
            case "OAUTHBEARER by a file":
                place = self.authority.write("token", lasting(3600))
                return self.login("OAUTHBEARER", **{"sasl.oauthbearer.token.file": place})
            case "OAUTHBEARER by an endpoint":
                return self.login("OAUTHBEARER", **self.of_endpoint())
            case "OAUTHBEARER by an endpoint as RFC 6749 has it":
                encoded = {"sasl.oauthbearer.header.urlencode": "true"}
                return self.login("OAUTHBEARER", **self.of_endpoint(), **encoded)
        return self.login(way, **named)

    def of_endpoint(self) -> Settings:
        return {
            "sasl.oauthbearer.token.endpoint.url": self.endpoint.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.scope": "kafka",
            "https.ca.location": self.authority.file,
        }


@pytest.fixture(scope="module")
def clients(kafka: rival.ApacheKafka, authority: Authority, endpoint: IdentityProvider) -> Clients:
    return Clients(kafka, authority, endpoint)


def fresh() -> str:
    return f"secured-{uuid.uuid4().hex[:8]}"


def read_group(settings: Settings, topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    with Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + PATIENCE
        while len(found) < count:
            assert time.monotonic() < deadline, consumer
            found += [record.value for record in consumer.poll(0.5)]
        consumer.commit()
    return found


@pytest.mark.parametrize("way", WAYS)
def test_admin_producer_and_group_work_with_every_login_mechanism(clients: Clients, way: str) -> None:
    settings, topic = clients.settings(way), fresh()
    with Admin(settings) as admin, Producer(settings) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for n in range(1000):
            producer.send(topic, b"%d" % n + bytes(500))
        producer.flush(PATIENCE)
        assert len(read_group(settings, topic, 1000)) == 1000
        assert topic in admin.list_consumer_group_offsets(topic).__repr__()


@pytest.mark.parametrize("way", ["SCRAM-SHA-512", "OAUTHBEARER by an endpoint"])
def test_asyncio_works_too(clients: Clients, way: str) -> None:
    settings, topic = clients.settings(way), fresh()

    async def there_and_back() -> list[bytes | None]:
        async with AsyncProducer(settings) as producer:
            for n in range(10):
                await producer.send(topic, b"%d" % n)
        found: list[bytes | None] = []
        async with AsyncConsumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe([topic])
            while len(found) < 10:
                found += [record.value for record in await consumer.poll(1.0)]
        return found

    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    assert asyncio.run(asyncio.wait_for(there_and_back(), PATIENCE)) == [b"%d" % n for n in range(10)]


@pytest.mark.parametrize("way", ["SCRAM-SHA-256", "OAUTHBEARER by a function"])
def test_sessions_are_renewed_during_traffic(clients: Clients, way: str, caplog: pytest.LogCaptureFixture) -> None:
    settings, topic = clients.settings(way), fresh()
    with Producer(settings) as producer, Consumer(settings) as consumer:
        with Admin(settings) as admin:
            admin.create_topics([NewTopic(topic, 1, 1)])
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        sent = received = 0
        end = time.monotonic() + 3 * SESSION_MS / 1000
        while time.monotonic() < end:
            producer.send(topic, b"%d" % sent).result(PATIENCE)
            sent += 1
            received += len(consumer.poll(0.01))
        while received < sent:
            received += len(consumer.poll(1.0))
    lost = [line for line in caplog.messages if "lost" in line or "cannot reach" in line]
    assert lost == []
    assert sent > 10


def test_tokens_are_fetched_again_before_they_expire(clients: Clients, endpoint: IdentityProvider) -> None:
    endpoint.seconds = 4.0
    asked = len(endpoint.scopes)
    try:
        with Admin(clients.login("OAUTHBEARER", **clients.of_endpoint())) as admin:
            end = time.monotonic() + 10
            while time.monotonic() < end:
                admin.list_topics()
    finally:
        endpoint.seconds = 300.0
    assert 2 <= len(endpoint.scopes) - asked <= 8
    assert endpoint.scopes[-1] == "kafka"


def test_a_request_to_a_failing_token_endpoint_is_retried(clients: Clients, endpoint: IdentityProvider) -> None:
    endpoint.failures = 2
    with Admin(clients.login("OAUTHBEARER", **clients.of_endpoint())) as admin:
        admin.list_topics()
    assert endpoint.failures == 0


def mistakes(clients: Clients) -> dict[str, tuple[Settings, str]]:
    named = {"sasl.username": USER, "sasl.password": "wr0ng-s3cret"}
    right = clients.settings("PLAIN")
    stranger = Authority(clients.authority.folder.parent).file
    return {
        "wrong password by PLAIN": (clients.login("PLAIN", **named), "rejected the login by PLAIN as 'alice'"),
        "wrong password by SCRAM": (clients.login("SCRAM-SHA-512", **named), "check sasl.username and sasl.password"),
        "a token that is none": (
            clients.login("OAUTHBEARER", **{"sasl.oauth.token.provider": lambda: "wr0ng-s3cret"}),
            "the server rejected the token",
        ),
        "wrong client secret": (
            clients.login("OAUTHBEARER", **clients.of_endpoint())
            | {"sasl.oauthbearer.client.credentials.client.secret": "wr0ng-s3cret"},
            "HTTP status 401: invalid_client",
        ),
        "an endpoint that is not believed": (
            {**clients.login("OAUTHBEARER", **clients.of_endpoint()), "https.ca.location": stranger},
            "check https.ca.location",
        ),
        "another authority": ({**right, "ssl.truststore.location": stranger}, "add its certificate to"),
        "no authority": ({k: v for k, v in right.items() if "truststore" not in k}, "ssl.truststore.location"),
        "no certificate of ours": (clients.at("MUTUAL", "SSL"), "the broker requires a certificate of this client"),
        "TLS at a plaintext port": (
            {**clients.at("SSL", "SSL"), "bootstrap.servers": clients.kafka.bootstrap_servers},
            "this is a plaintext port; set security.protocol=PLAINTEXT",
        ),
        "plaintext at a port for TLS": (
            {"bootstrap.servers": clients.kafka.listeners["SSL"]},
            "it answers with TLS: set security.protocol=SSL",
        ),
        "no login where one is wanted": (clients.at("SASL_SSL", "SSL"), "set security.protocol=SASL_SSL"),
        "no login in the clear": (clients.at("SASL_PLAINTEXT", "PLAINTEXT"), "set security.protocol=SASL_PLAINTEXT"),
        "a login where none is wanted": (
            {**clients.at("SSL", "SASL_SSL"), "sasl.mechanism": "PLAIN", **named},
            "requires no login; set security.protocol=SSL",
        ),
    }


MISTAKES = (
    "wrong password by PLAIN",
    "wrong password by SCRAM",
    "a token that is none",
    "wrong client secret",
    "an endpoint that is not believed",
    "another authority",
    "no authority",
    "no certificate of ours",
    "TLS at a plaintext port",
    "plaintext at a port for TLS",
    "no login where one is wanted",
    "no login in the clear",
    "a login where none is wanted",
)


def ask(settings: Settings) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def produce(settings: Settings) -> None:
    with Producer(settings) as producer:
        producer.send("t", b"v")


def consume(settings: Settings) -> None:
    with Consumer(settings) as consumer:
        consumer.subscribe(["t"]) if "group.id" in settings else consumer.assign([TopicPartition("t", 0)])
        while True:
            consumer.poll(1.0)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_one_line_error_at_once(
    clients: Clients, mistake: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings, reported = mistakes(clients)[mistake]
    for act in (ask, produce, consume):
        started = time.monotonic()
        with pytest.raises((AuthenticationError, NoBrokersAvailableError)) as caught:
            act(settings)
        assert time.monotonic() - started < AT_ONCE
        assert reported in str(caught.value)
        assert "\n" not in str(caught.value)
    for text in (*caplog.messages, str(caught.value)):
        assert "s3cret" not in text


def test_a_group_member_also_receives_the_error_of_a_wrong_password(clients: Clients) -> None:
    settings = {**clients.login("PLAIN"), "sasl.username": USER, "sasl.password": "wr0ng", "group.id": "g"}
    with pytest.raises(AuthenticationError):
        consume(settings)


def ottla(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla.cli.main", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_command_line_accepts_a_properties_file(clients: Clients, tmp_path: Path) -> None:
    settings = clients.settings("SCRAM by JAAS")
    server = settings.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items())
    file.write_text("# for the tests\n" + "\n".join(lines))
    where = ("--bootstrap-server", server, "--command-config", str(file))
    topic = fresh()
    assert ottla("topics", "create", topic, *where).returncode == 0
    assert ottla("produce", topic, *where, given="one\ntwo\n").returncode == 0
    read = ottla("consume", topic, *where, "--from-beginning", "--max-messages", "2")
    assert read.stdout.splitlines() == ["one", "two"]
    wrong = ottla(
        "topics", "list", *where, "--set", "sasl.mechanism=SCRAM-SHA-256", "--set", "ssl.truststore.location="
    )
    assert wrong.returncode != 0
    assert "Traceback" not in wrong.stderr
    assert PASSWORD not in wrong.stderr


def test_our_errors_are_one_family() -> None:
    assert issubclass(AuthenticationError, OttlaError)
