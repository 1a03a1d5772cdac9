"""Kerberos logins with a KDC of the test: our clients at both brokers, foreign clients at our broker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from interop.kafka_tools import Tools
from interop.kerberized import (
    KERBEROS,
    KRB5,
    SESSION_MS,
    Places,
    Settings,
    address_of,
    apache,
    fresh,
    java_option,
    places,
    which,
)
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.aio import Consumer as AsyncConsumer
from ottla.aio import Producer as AsyncProducer
from ottla.errors import AuthenticationError, ConfigError, ErrorCode, KafkaError
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from rivals import kerberos
from rivals.kerberos import REALM, realm
from tests.broker.wire import Wire
from tests.patience import eventually

PATIENCE = 60.0
AT_ONCE = 15.0
__all__ = ["apache", "places", "which"]


def test_admin_producer_and_group_log_in_by_a_keytab(places: Places, which: str) -> None:
    settings, topic = places.by_keytab(which), fresh()
    with Admin(settings) as admin, Producer(settings) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for n in range(100):
            producer.send(topic, b"%d" % n)
        producer.flush(PATIENCE)
    found: list[bytes | None] = []
    deadline = time.monotonic() + PATIENCE
    with Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        while len(found) < 100:
            assert time.monotonic() < deadline
            found += [record.value for record in consumer.poll(0.5)]
    assert found == [b"%d" % n for n in range(100)]


def ways(places: Places) -> dict[str, Settings]:
    line = f'{KRB5} useKeyTab=true storeKey=true keyTab="{places.alice}" principal="alice@{REALM}" serviceName="kafka";'
    cache = places.realm.tickets(places.alice, "alice", cache="of-alice")
    return {
        "a line of Java's": {"sasl.jaas.config": line},
        "tickets of kinit's in a line": {"sasl.jaas.config": f'{KRB5} useTicketCache=true ticketCache="{cache}";'},
        "the whole principal": {"sasl.kerberos.keytab": places.alice, "sasl.kerberos.principal": f"alice@{REALM}"},
        "a keytab alone": {"sasl.kerberos.keytab": places.alice},
        "librdkafka's names": {
            "sasl.kerberos.keytab": places.alice,
            "sasl.kerberos.principal": "alice",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.kinit.cmd": "rm -rf /",
        },
    }


@pytest.mark.parametrize(
    "way",
    ["a line of Java's", "tickets of kinit's in a line", "the whole principal", "a keytab alone", "librdkafka's names"],
)
def test_each_form_of_credentials_logs_in(places: Places, which: str, way: str) -> None:
    with Admin({**places.at(which), **ways(places)[way]}) as admin:
        admin.list_topics()


def test_tickets_of_kinit_are_used_by_default(places: Places, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", places.realm.tickets(places.alice, "alice", cache="default"))
    with Admin(places.at(which)) as admin:
        admin.list_topics()


def test_asyncio_works_too(places: Places, which: str) -> None:
    settings, topic = places.by_keytab(which), fresh()
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])

    async def there_and_back() -> bytes | None:
        async with AsyncProducer(settings) as producer:
            await producer.send(topic, b"one")
        async with AsyncConsumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe([topic])
            while not (records := await consumer.poll(1.0)):
                pass
            return next(iter(records)).value

    assert asyncio.run(asyncio.wait_for(there_and_back(), PATIENCE)) == b"one"


def test_sessions_are_renewed_during_traffic(places: Places, which: str, caplog: pytest.LogCaptureFixture) -> None:
    settings, topic = places.by_keytab(which), fresh()
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
    assert [line for line in caplog.messages if "lost" in line or "cannot reach" in line] == []


def mistakes(places: Places) -> dict[str, tuple[Settings, str]]:
    made, folder = places.realm, places.realm.folder
    for gone in ("ghost", "changed"):
        if not (folder / gone).exists():
            made.add(gone)
            made.keytab(gone, gone)
            made.administer("delprinc -force ghost" if gone == "ghost" else "cpw -randkey changed")
    made.administer("modprinc +requires_preauth changed")
    (folder / "nonsense").write_text("nonsense")
    ended = made.tickets(places.alice, "alice", "-l", "1s", cache="ended")
    has_ended = ["klist", "-s", "-c", ended]
    eventually(lambda: subprocess.run(has_ended, check=False).returncode)

    def by(**more: Any) -> Settings:
        return places.at("ottla", **more)

    return {
        "no ticket": (by(), "run kinit"),
        "a ticket that has ended": (
            by(sasl_jaas_config=f'{KRB5} useTicketCache=true ticketCache="{ended}";'),
            "the ticket has expired: run kinit",
        ),
        "no such keytab": (
            by(sasl_kerberos_keytab="/nowhere/a.keytab"),
            "No such file or directory; check sasl.kerberos.keytab",
        ),
        "a keytab that is none": (by(sasl_kerberos_keytab=f"{folder}/nonsense"), "is not a keytab"),
        "somebody who is not in the keytab": (
            by(sasl_kerberos_keytab=places.alice, sasl_kerberos_principal="bob"),
            "has no key of bob: check `klist -k",
        ),
        "somebody whom the KDC has forgotten": (
            by(sasl_kerberos_keytab=f"{folder}/ghost"),
            "does not know the principal",
        ),
        "keys that were changed": (by(sasl_kerberos_keytab=f"{folder}/changed"), "create a new keytab"),
        "another service": (
            {**places.by_keytab("ottla"), "sasl.kerberos.service.name": "redpanda"},
            "the KDC does not know redpanda/127.0.0.1",
        ),
    }


@pytest.mark.parametrize(
    "mistake",
    [
        "no ticket",
        "a ticket that has ended",
        "no such keytab",
        "a keytab that is none",
        "somebody who is not in the keytab",
        "somebody whom the KDC has forgotten",
        "keys that were changed",
        "another service",
    ],
)
def test_a_mistake_is_a_one_line_error_at_once(places: Places, mistake: str) -> None:
    settings, sentence = mistakes(places)[mistake]
    begun = time.monotonic()
    with Admin(settings) as admin, pytest.raises(AuthenticationError) as caught:
        admin.list_topics()
    assert time.monotonic() - begun < AT_ONCE
    assert sentence in str(caught.value)


def test_an_unreachable_kdc_is_reported(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "krb5.conf"
    config.write_text(places.realm.config.read_text().replace(f":{places.realm.port}", ":1"))
    monkeypatch.setenv("KRB5_CONFIG", str(config))
    with Admin(places.by_keytab("ottla")) as admin, pytest.raises(AuthenticationError, match="that the KDC runs"):
        admin.list_topics()
    config.write_text("")
    with Admin(places.by_keytab("ottla")) as admin, pytest.raises(AuthenticationError, match="the file of KRB5_CONFIG"):
        admin.list_topics()


def command(*arguments: str, where: Settings, given: str = "") -> subprocess.CompletedProcess[str]:
    address, settings = where["bootstrap.servers"], {n: v for n, v in where.items() if n != "bootstrap.servers"}
    said = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    whole = [sys.executable, "-m", "ottla.cli.main", *arguments, "--bootstrap-server", address, *said]
    return subprocess.run(whole, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_command_line_logs_in_and_reports_errors(places: Places) -> None:
    topic = fresh()
    assert command("topics", "create", topic, where=places.by_keytab("ottla")).returncode == 0
    assert command("produce", topic, where=places.by_keytab("ottla"), given="one\n").returncode == 0
    wrong = command("topics", "list", where=places.at("ottla"))
    assert wrong.returncode != 0
    assert "run kinit" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_an_asyncio_loop_continues_while_a_kdc_does_not_respond(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_port() as port:
        config = tmp_path / "krb5.conf"
        config.write_text(places.realm.config.read_text().replace(f":{places.realm.port}", f":{port}"))
        monkeypatch.setenv("KRB5_CONFIG", str(config))

        async def turns() -> float:
            consumer = AsyncConsumer(places.by_keytab("ottla"))
            consumer.assign([TopicPartition("t", 0)])
            reading = asyncio.ensure_future(consumer.poll(5.0))
            longest, last = 0.0, time.monotonic()
            while not reading.done():
                await asyncio.sleep(0.01)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            with contextlib.suppress(AuthenticationError):
                await reading
            await consumer.close()
            return longest

        assert asyncio.run(asyncio.wait_for(turns(), PATIENCE)) < 1.0


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts TCP and UDP and never responds."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream,
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
    ):
        stream.bind(("127.0.0.1", 0))
        stream.listen()
        datagrams.bind(stream.getsockname())
        yield stream.getsockname()[1]


def test_a_ticket_of_kinit_is_renewed_before_it_expires(places: Places) -> None:
    cache = places.realm.tickets(places.alice, "alice", "-l", "6s", "-r", "1h", cache="renewed")
    line = f'{KRB5} useTicketCache=true ticketCache="{cache}";'
    with Admin(places.at("ottla", sasl_jaas_config=line)) as admin:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            admin.list_topics()
    with Admin(places.at("ottla", sasl_jaas_config=line)) as admin:
        admin.list_topics()


def test_a_principal_is_mapped_to_a_user_with_the_rights_of_that_user(places: Places) -> None:
    topic = fresh()
    keytab = places.realm.keytab("etl.keytab", "etl/nightly")
    with Admin(places.at("ottla", sasl_kerberos_keytab=keytab)) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])  # as etl-nightly, which is one of super.users
    places.realm.add("mallory")
    stranger = places.at("ottla", sasl_kerberos_keytab=places.realm.keytab("mallory.keytab", "mallory"))
    with Admin(stranger) as admin, pytest.raises(KafkaError, match="AUTHORIZATION_FAILED"):
        admin.create_topics([NewTopic(fresh(), 1, 1)])


def kcat_has_kerberos() -> bool:
    """True if kcat is installed with SASL support and the system has the GSSAPI plugin of Cyrus SASL."""
    if shutil.which("kcat") is None or not list(Path("/usr/lib").glob("**/sasl2/libgssapiv2.so*")):
        return False
    return "sasl_gssapi" in subprocess.check_output(["kcat", "-X", "list"], text=True)


def test_librdkafka_logs_in_to_our_broker(places: Places) -> None:
    if not kcat_has_kerberos():
        pytest.skip("there is no kcat here whose librdkafka has GSSAPI: install kcat and libsasl2-modules-gssapi-mit")
    topic = fresh()
    with Admin(places.by_keytab("ottla")) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    settings = places.by_keytab("ottla") | {"sasl.kerberos.principal": f"alice@{REALM}"}
    said = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    cache = {**os.environ, "KRB5CCNAME": f"FILE:{places.realm.folder}/of-kcat"}

    def kcat(*options: str) -> subprocess.CompletedProcess[bytes]:
        command = ["kcat", *options, "-t", topic, *said]
        return subprocess.run(
            command, env=cache, check=False, input=b"one\ntwo\n", capture_output=True, timeout=PATIENCE
        )

    wrote = kcat("-P")
    assert wrote.returncode == 0, wrote.stderr
    read = kcat("-C", "-e", "-q")
    assert read.stdout == b"one\ntwo\n", read.stderr


@pytest.fixture(scope="module")
def tools(places: Places) -> Iterator[Tools]:
    with patch.dict("os.environ", JAVA_TOOL_OPTIONS=java_option(places.realm)):
        running = Tools()
    with running:
        yield running


def test_kafkas_own_tools_log_in_to_our_broker(places: Places, tools: Tools, tmp_path: Path) -> None:
    file, topic = tmp_path / "client.properties", fresh()
    line = f'{KRB5} useKeyTab=true storeKey=true keyTab="{places.alice}" principal="alice@{REALM}";'
    settings = {**places.at("ottla"), "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": line}
    address = settings.pop("bootstrap.servers")
    file.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    where = ("--bootstrap-server", address, "--command-config", file)
    made = tools.run("TopicCommand", *where, "--create", "--topic", topic)
    assert made.status == 0, made.text
    assert topic in tools.run("TopicCommand", *where, "--list").text.split()


def is_logged(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    """Return True if a log line contains a text."""
    return any(text in line for line in caplog.messages)


def test_an_invalid_ticket_is_rejected_and_logged(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    keytab = places.realm.folder / "kafka.keytab"
    with caplog.at_level(logging.WARNING), Broker(**in_process(str(keytab))) as broker:
        for sent, why in (
            (b"", "the first message is empty"),
            (b"x" * 100, "Kerberos failed: "),
            (SPNEGO, "Kerberos failed: "),
        ):
            caplog.clear()
            with Wire(address_of(broker)) as wire:
                assert wire.ask(SaslHandshakeRequest("GSSAPI"), 1).error_code == 0
                answer = wire.ask(SaslAuthenticateRequest(sent), 2)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert why not in answer.error_message
            eventually(partial(is_logged, caplog, why))
        with Admin({**places.by_keytab("ottla"), "bootstrap.servers": address_of(broker)}) as admin:
            admin.list_topics()


SPNEGO = bytes.fromhex("60280606 2b060105 0502a01e 301ca00e 300c060a 2b060104 01823702 020aa20a 04080011 22334455 6677")
"""The start of a GSSAPI negotiation without the framing of Kafka's protocol."""


def in_process(keytab: str, principal: str = "*") -> dict[str, Any]:
    line = f'{KRB5} useKeyTab=true keyTab="{keytab}" principal="{principal}";'
    return {
        "listen": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl_enabled_mechanisms": "GSSAPI",
        "connection_failed_authentication_delay_ms": 10,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": line,
    }


@pytest.mark.parametrize(
    ("keytab", "principal", "why"),
    [
        ("nowhere", "*", "nowhere: No such file or directory; check keyTab"),
        ("kdc.conf", "*", "is not a keytab: check keyTab"),
        ("kafka.keytab", "kafka/elsewhere", "list the keys with `klist -k "),
    ],
)
def test_a_broker_without_its_keytab_reports_it_before_it_listens(
    places: Places, keytab: str, principal: str, why: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Broker(**in_process(f"{places.realm.folder}/{keytab}", principal)).start()
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broker_uses_changed_keys_without_a_restart(places: Places) -> None:
    made = places.realm
    made.add("moved/127.0.0.1")
    keytab = made.keytab("moved.keytab", "moved/127.0.0.1")
    with Broker(**in_process(keytab, "moved/127.0.0.1")) as broker:
        settings = {**places.by_keytab("ottla"), "sasl.kerberos.service.name": "moved"}
        settings["bootstrap.servers"] = address_of(broker)
        with Admin(settings) as admin:
            admin.list_topics()
        made.administer("cpw -randkey moved/127.0.0.1")
        with Admin(settings) as admin, pytest.raises(AuthenticationError, match="check the broker's log, its keytab"):
            admin.list_topics()
        Path(keytab).unlink()
        made.keytab("moved.keytab", "moved/127.0.0.1")
        with Admin(settings) as admin:
            admin.list_topics()


def test_clock_skew_is_reported() -> None:
    if (reported := kerberos.missing()) is not None:
        pytest.skip(reported)
    with realm(ahead_seconds=3600) as made:
        made.add("alice", "kafka/127.0.0.1")
        keytab = made.keytab("kafka.keytab", "kafka/127.0.0.1")
        with Broker(**in_process(keytab)) as broker:
            settings = {**KERBEROS, "bootstrap.servers": address_of(broker)}
            settings["sasl.kerberos.keytab"] = made.keytab("alice.keytab", "alice")
            with Admin(settings) as admin, pytest.raises(AuthenticationError, match="clocks of"):
                admin.list_topics()
