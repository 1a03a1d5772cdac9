"""Connections that nobody knows: slow ones, half ones, many, damaged ones; the good client beside them notices nothing."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
from pathlib import Path
from random import Random

import pytest

from ottla import Admin
from ottla.broker.authentication import authentication
from ottla.broker.authentication.distinguished_name import distinguished_name, mapped, read_rules
from ottla.broker.embedded import Broker
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.security.secured import LISTENERS, Secured, log_in, settings_of
from tests.broker.wire import Wire
from tests.certificates import Authority
from tests.patience import eventually

CROWD = 300


def address(secured: Secured, listener: str) -> tuple[str, int]:
    host, _, port = secured.broker.addresses[listener].rpartition(":")
    return host, int(port)


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_a_crowd_that_says_nothing_or_half_of_something_holds_up_nobody(secured: Secured, listener: str) -> None:
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)
    crowd = [socket.create_connection(address(secured, listener), timeout=20) for _ in range(CROWD)]
    try:
        for number, sock in enumerate(crowd):
            sock.sendall(hello[: number % 40] if listener != "SASL_PLAINTEXT" else bytes((0, 0, 1, 0))[: number % 5])
        with secured.wire("SASL_SSL") as wire:
            assert log_in(wire).error_code == 0
            assert wire.ask(MetadataRequest([])).brokers
    finally:
        for sock in crowd:
            sock.close()


def test_of_too_many_strangers_the_one_who_came_first_has_to_go(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MOST_UNKNOWN", 20)
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        descriptors = len(os.listdir("/proc/self/fd"))
        with secured.wire("SASL_PLAINTEXT") as known:
            log_in(known)
            strangers = [socket.create_connection(address(secured, "SASL_PLAINTEXT"), timeout=20) for _ in range(30)]
            assert strangers[0].recv(1) == b""
            assert known.ask(MetadataRequest([])).brokers
            with secured.wire("SASL_PLAINTEXT") as late:
                assert log_in(late).error_code == 0
            for sock in strangers:
                sock.close()
        eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 2)


def test_who_does_not_log_in_in_time_has_to_go(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "LOGIN_SECONDS", 0.5)
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        for listener in ("SSL", "SASL_PLAINTEXT"):
            with socket.create_connection(address(secured, listener), timeout=20) as sock:
                assert sock.recv(1) == b""
        with secured.wire("SASL_PLAINTEXT") as wire:
            log_in(wire)
            time_passes = socket.create_connection(address(secured, "SASL_PLAINTEXT"), timeout=20)
            assert time_passes.recv(1) == b""
            time_passes.close()
            assert wire.ask(MetadataRequest([])).brokers


def test_damaged_records_of_tls_end_their_connection_alone(secured: Secured) -> None:
    chance = Random(7)
    context = ssl.create_default_context(cafile=secured.authority.file)
    for _ in range(60):
        with socket.create_connection(address(secured, "SASL_SSL"), timeout=20) as sock:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            try:
                for _ in range(4):
                    try:
                        tls.do_handshake()
                    except ssl.SSLWantReadError:
                        pass
                    data = bytearray(outgoing.read())
                    if data and chance.random() < 0.5:
                        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                    sock.sendall(data)
                    sock.settimeout(0.05)
                    try:
                        incoming.write(sock.recv(65_536))
                    except TimeoutError:
                        pass
            except (OSError, ssl.SSLError):
                pass
    with secured.wire("SASL_SSL") as wire:
        assert log_in(wire).error_code == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_damaged_messages_of_a_login_are_refused_and_nothing_else(secured: Secured, mechanism: str) -> None:
    chance = Random(11)
    good = {
        "PLAIN": b"\0alice\0x",
        "SCRAM-SHA-256": b"n,,n=alice,r=abcdef",
        "OAUTHBEARER": b"n,,\x01auth=Bearer a.b.c\x01\x01",
    }
    for _ in range(40):
        with secured.wire("SASL_PLAINTEXT") as wire:
            wire.ask(SaslHandshakeRequest(mechanism), 1)
            message = bytearray(good[mechanism])
            for _ in range(chance.randrange(4)):
                message[chance.randrange(len(message))] = chance.randrange(256)
            first = wire.ask(SaslAuthenticateRequest(bytes(message)), 2)
            if not first.error_code:
                second = wire.ask(SaslAuthenticateRequest(chance.randbytes(chance.randrange(60))), 2)
                assert second.error_code
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert log_in(wire).error_code == 0


def test_certificates_are_read_again_and_one_that_cannot_be_read_changes_nothing(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (other := tmp_path / "other").mkdir()
    second = Authority(other)
    made = second.certificate()
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        store = tmp_path / "server.pem"

        def trusted_by(whom: Authority) -> bool:
            context = ssl.create_default_context(cafile=whom.file)
            with socket.create_connection(address(secured, "SSL"), timeout=20) as sock:
                try:
                    context.wrap_socket(sock, server_hostname="127.0.0.1").close()
                except ssl.SSLCertVerificationError:
                    return False
            return True

        with secured.wire("SSL") as before, caplog.at_level(logging.WARNING):
            assert trusted_by(authority)
            store.write_text("nonsense")
            assert trusted_by(authority)
            assert trusted_by(authority)
            assert len([line for line in caplog.messages if "stays in use" in line]) == 1
            store.write_text(made.chain + made.key)
            assert trusted_by(second)
            assert before.ask(MetadataRequest([])).brokers
        (tmp_path / "third.pem").write_text(authority.certificate().chain + "")
        good = authority.certificate()
        (tmp_path / "fourth.pem").write_text(good.chain + good.key)
        for file, whom in (("third.pem", second), ("fourth.pem", authority)):
            change = AlterableConfig("listener.name.ssl.ssl.keystore.location", 0, str(tmp_path / file))
            with secured.wire("PLAINTEXT") as wire:
                asked = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", [change])])
                assert wire.ask(asked).responses[0].error_code == 0
            assert trusted_by(whom)


def test_a_session_that_is_over_ends_with_the_next_request(authority: Authority, tmp_path: Path) -> None:
    settings = settings_of(authority, tmp_path) | {"connections_max_reauth_ms": 400}
    with Broker(listen=LISTENERS, **settings) as broker:
        secured = Secured(broker, authority, tmp_path)
        with secured.wire("SASL_SSL") as wire:
            assert log_in(wire).session_lifetime_ms == 400
            assert wire.ask(MetadataRequest([])).brokers
            eventually(lambda: is_over(wire))
        with Admin(secured.login("SCRAM-SHA-512")) as admin:
            end = time.monotonic() + 2
            while time.monotonic() < end:
                admin.list_topics()


def is_over(wire: Wire) -> bool:
    try:
        wire.ask(MetadataRequest([]))
    except (EOFError, ConnectionError):
        return True
    return False


SUBJECT = {
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "Ottla, Inc."),),
        (("organizationalUnitName", "ops"), ("userId", "7")),
        (("emailAddress", "a@b"),),
        (("commonName", "alice"),),
    )
}


def test_a_name_in_a_certificate_is_spelled_as_javas() -> None:
    assert distinguished_name(SUBJECT) == (
        "CN=alice,1.2.840.113549.1.9.1=#1603614062,OU=ops+UID=7,O=Ottla\\, Inc.,C=DE"
    )


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", "CN=ALICE,OU=x"),
        ("", "CN=ALICE,OU=x"),
        ("RULE:^CN=(.*?),OU=(.*)$/$1@$2/L", "alice@x"),
        ("RULE:^CN=(.*?),O=.*$/$1/,RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "ALICE"),
        (r"RULE:CN=(\w+),.*/a\/$1/", "a/ALICE"),
        ("RULE:nobody/x/", None),
    ],
)
def test_rules_make_users_of_names(rules: str, user: str | None) -> None:
    assert mapped("CN=ALICE,OU=x", read_rules(rules)) == user
