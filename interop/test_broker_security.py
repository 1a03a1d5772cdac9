"""Foreign clients at our broker with TLS and SASL: each mechanism, and a wrong password."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.net.sasl.oauth import AbstractTokenProvider

from interop import node
from interop.kafka_tools import Tools
from ottla import Admin, NewTopic
from ottla.broker.embedding.embedded_broker import Broker
from rivals import apache_kafka as rival
from tests.broker.security.secured import LISTENERS, PASSWORD, USER, Secured, lasting, settings_of, token
from tests.certificates import Authority
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider

PATIENCE = 60.0
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS = ("SSL", "MUTUAL", *MECHANISMS, "OAUTHBEARER", "in the clear")
VALUES = [b"%d" % n + bytes(size) for n, size in enumerate((0, 1, 100, 70_000, 900_000))]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    keys = tmp_path_factory.mktemp("keys")
    settings = settings_of(authority, keys) | {"connections_max_reauth_ms": 4000}
    with Broker(listen=LISTENERS, process=True, **settings) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic_of(way, who), 1, 1) for way in WAYS for who in CLIENTS])
        yield Secured(broker, authority, keys)


class LoginMechanism:
    """The settings of one login mechanism."""

    def __init__(self, secured: Secured, name: str) -> None:
        listener = {"SSL": "SSL", "MUTUAL": "MUTUAL", "in the clear": "SASL_PLAINTEXT"}.get(name, "SASL_SSL")
        self.address = secured.broker.addresses[listener]
        self.protocol = {"SSL": "SSL", "MUTUAL": "SSL"}.get(name, listener)
        self.mechanism = {"SSL": "", "MUTUAL": "", "in the clear": "SCRAM-SHA-256"}.get(name, name)
        self.authority = secured.authority.file
        self.identity = ""
        if name == "MUTUAL":
            made = secured.authority.certificate("me")
            self.identity = secured.authority.write("client.pem", made.chain + made.key)


def librdkafka(way: LoginMechanism) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": way.address, "security.protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        settings["ssl.ca.location"] = way.authority
    if way.identity:
        settings |= {"ssl.certificate.location": way.identity, "ssl.key.location": way.identity}
    if way.mechanism == "OAUTHBEARER":
        settings |= {"sasl.mechanism": way.mechanism, "oauth_cb": lambda _: (token(), time.time() + 300)}
    elif way.mechanism:
        settings |= {"sasl.mechanism": way.mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    return settings


def confluent(way: LoginMechanism, topic: str) -> list[bytes]:
    producer = ConfluentProducer(librdkafka(way))
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE) == 0
    consumer = ConfluentConsumer({**librdkafka(way), "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([ConfluentTopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < len(VALUES) and time.monotonic() < deadline:
        for message in consumer.consume(10, 0.5):
            assert message.error() is None, message.error()
            found.append(message.value() or b"")
    consumer.close()
    return found


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, **ignored: Any) -> None:
        pass

    def token(self) -> str:
        return token()


def of_kafka_python(way: LoginMechanism) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": way.address, "security_protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        settings["ssl_cafile"] = way.authority
    if way.identity:
        settings |= {"ssl_certfile": way.identity, "ssl_keyfile": way.identity}
    if way.mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": way.mechanism, "sasl_oauth_token_provider": Token()}
    elif way.mechanism:
        settings |= {
            "sasl_mechanism": way.mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }
    return settings


def kafka_python(way: LoginMechanism, topic: str) -> list[bytes]:
    settings = of_kafka_python(way)
    producer = KafkaProducer(**settings)
    for value in VALUES:
        producer.send(topic, value, partition=0)
    producer.flush(PATIENCE)
    producer.close()
    consumer = KafkaConsumer(**settings, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < len(VALUES) and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            found += [record.value for record in records]
    consumer.close()
    return found


class AsyncToken(AioTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return token()


def aiokafka(way: LoginMechanism, topic: str) -> list[bytes]:
    settings: dict[str, Any] = {"bootstrap_servers": way.address, "security_protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        own = {"certfile": way.identity, "keyfile": way.identity} if way.identity else {}
        settings["ssl_context"] = create_ssl_context(cafile=way.authority, **own)
    if way.mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": way.mechanism, "sasl_oauth_token_provider": AsyncToken()}
    elif way.mechanism:
        settings |= {
            "sasl_mechanism": way.mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }

    async def there_and_back() -> list[bytes]:
        async with AIOKafkaProducer(**settings) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value, partition=0)
        found: list[bytes] = []
        async with AIOKafkaConsumer(**settings, auto_offset_reset="earliest") as consumer:
            consumer.assign([AioTopicPartition(topic, 0)])
            while len(found) < len(VALUES):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [record.value for record in records]
        return found

    return asyncio.run(asyncio.wait_for(there_and_back(), PATIENCE))


CLIENTS: dict[str, Callable[[LoginMechanism, str], list[bytes]]] = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def topic_of(way: str, who: str) -> str:
    return f"{way}-{who}".replace(" ", "-")


@pytest.mark.parametrize("who", CLIENTS)
@pytest.mark.parametrize("way", WAYS)
def test_records_are_written_and_read_with_every_login_mechanism(secured: Secured, way: str, who: str) -> None:
    assert CLIENTS[who](LoginMechanism(secured, way), topic_of(way, who)) == VALUES


@pytest.fixture(scope="module")
def provider(secured: Secured) -> Iterator[IdentityProvider]:
    """An identity provider that issues tokens to the Java client."""
    with identity_provider(secured.authority.server_context(), lasting, {}) as running:
        yield running


@pytest.fixture(scope="module")
def tools(provider: IdentityProvider) -> Iterator[Tools]:
    rival.fetch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.token_url}")
        running = Tools()
    with running:
        yield running


def jaas(mechanism: str, authority: str) -> str:
    """Return the JAAS line of a Java client."""
    module, options = {
        "PLAIN": ("plain.Plain", {"username": USER, "password": PASSWORD}),
        "OAUTHBEARER": (
            "oauthbearer.OAuthBearer",
            {
                "clientId": CLIENT_ID,
                "clientSecret": CLIENT_SECRET,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": authority,
            },
        ),
    }.get(mechanism, ("scram.Scram", {"username": USER, "password": PASSWORD}))
    said = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"org.apache.kafka.common.security.{module}LoginModule required {said};"


def java_properties(secured: Secured, folder: Path, mechanism: str, token_url: str = "") -> Path:
    """Write the settings in the format of Kafka's own tools."""
    way = LoginMechanism(secured, mechanism)
    file = folder / f"{mechanism}.properties"
    lines = {
        "security.protocol": way.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": way.authority,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(mechanism, way.authority),
    }
    if token_url:
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        lines |= {"sasl.login.callback.handler.class": handler, "sasl.oauthbearer.token.endpoint.url": token_url}
    file.write_text("\n".join(f"{name}={value}" for name, value in lines.items()))
    return file


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "OAUTHBEARER"])
def test_kafkas_own_tools_log_in(
    secured: Secured, tools: Tools, provider: IdentityProvider, tmp_path: Path, mechanism: str
) -> None:
    token_url = provider.token_url if mechanism == "OAUTHBEARER" else ""
    file, topic = java_properties(secured, tmp_path, mechanism, token_url), f"java-{mechanism}"
    where = (
        "--bootstrap-server",
        LoginMechanism(secured, mechanism).address,
        "--topic",
        topic,
        "--command-config",
        file,
    )
    with Admin(bootstrap_servers=secured.broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    (payload := tmp_path / "payload").write_text("a\n")
    many = ("--payload-file", payload, "--num-records", 2, "--throughput", -1)
    sent = tools.run("ProducerPerformance", *where, *many)
    assert sent.status == 0, sent.text
    read = tools.run("consumer.ConsoleConsumer", *where, "--from-beginning", "--max-messages", 2)
    assert [line for line in read.text.splitlines() if line == "a"] == ["a", "a"], read.text


def test_kafka_configs_sets_the_password_of_a_user(secured: Secured, tools: Tools, tmp_path: Path) -> None:
    file = java_properties(secured, tmp_path, "SCRAM-SHA-512")
    where = ("--bootstrap-server", LoginMechanism(secured, "SCRAM-SHA-512").address, "--command-config", file)
    done = tools.run(
        "org.apache.kafka.tools.ConfigCommand",
        *where,
        *("--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=fr3d]"),
        *("--entity-type", "users", "--entity-name", "fred"),
    )
    assert done.status == 0, done.text
    with Admin(secured.login("SCRAM-SHA-512", "fred", "fr3d")) as admin:
        assert admin.list_topics()


def test_sessions_are_renewed_during_traffic(secured: Secured) -> None:
    """With sessions of four seconds (KIP-368), librdkafka reauthenticates by itself."""
    topic = topic_of("SCRAM-SHA-512", "aiokafka")
    producer = ConfluentProducer(librdkafka(LoginMechanism(secured, "SCRAM-SHA-512")))
    errors: list[Any] = []
    end = time.monotonic() + 10
    while time.monotonic() < end:
        producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error) if error else None)
        producer.poll(0.05)
    assert producer.flush(PATIENCE) == 0
    assert errors == []


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "OAUTHBEARER"])
def test_kafkajs_logs_in(secured: Secured, mechanism: str) -> None:
    if reason := node.missing():
        pytest.skip(reason)
    way, topic = LoginMechanism(secured, mechanism), f"kafkajs-{mechanism}"
    with Admin(bootstrap_servers=secured.broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    reported = {
        "address": way.address.replace("127.0.0.1", "localhost"),
        "authority": secured.authority.pem,
        "topic": topic,
        "mechanism": mechanism.lower(),
        "username": USER,
        "password": PASSWORD,
        "token": token(),
    }
    command, more = node.command("secured.js", json.dumps(reported))
    done = subprocess.run(
        command, env={**os.environ, **more}, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout.split() == ["a", "b"], done.stderr
