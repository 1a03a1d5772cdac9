"""Unauthenticated connections: slow, incomplete, many and damaged ones. They do not affect an authenticated client."""

from __future__ import annotations

import contextlib
import itertools
import logging
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from ottla import Admin
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.security import authentication
from ottla.broker.security.distinguished_name import distinguished_name, map_name, read_rules
from ottla.errors import ErrorCode
from ottla.free_ports import free_port
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.descriptors import both_ends_of, open_descriptors
from tests.broker.security.secured import LISTENERS, Secured, log_in, settings_of
from tests.broker.test_metrics import metrics
from tests.broker.wire import Wire
from tests.certificates import Authority
from tests.patience import eventually

CROWD = 1000
TLS_LISTENERS, LOGIN_LISTENERS = ("SSL", "SASL_SSL", "MUTUAL"), ("SASL_PLAINTEXT",)
LOGIN_BYTES = 20_000
"""The frame limit of `settings_of` before a login."""


def address(secured: Secured, listener: str) -> tuple[str, int]:
    host, _, port = secured.broker.addresses[listener].rpartition(":")
    return host, int(port)


def hello() -> bytes:
    """The start of a TLS handshake."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def endless_hello() -> bytes:
    """Records of a first message that never ends: OpenSSL would wait for 128 KiB of it."""
    records = [b"\x01\x01\xff\xf0" + bytes(16_380)] + [bytes(16_384)] * 6
    return b"".join(b"\x16\x03\x01" + len(record).to_bytes(2, "big") + record for record in records)


def test_an_unfinished_tls_handshake_is_closed_after_its_timeout(secured: Secured) -> None:
    with socket.create_connection(address(secured, "SSL"), timeout=20) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(endless_hello())
        with contextlib.suppress(ConnectionError):
            assert not sock.recv(1)


def test_of_many_unfinished_handshakes_the_log_reports_few_and_then_their_number(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ends = set()
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        for said in (hello()[:100], b"garbage" * 10) * 100:
            with socket.create_connection(address(secured, "SASL_SSL"), timeout=20) as sock:
                ends.add(end_of(sock))
                sock.sendall(said)
        gate = broker._running._server.broker.gate  # type: ignore[union-attr]
        eventually(lambda: gate._bad_ends._count == 200)
        with secured.wire("SASL_SSL") as wire:
            assert log_in(wire).error_code == 0
            ends.add(end_of(wire.socket))
            wire.socket.sendall(b"garbage" * 10)
            assert wire.hung_up()
        eventually(lambda: len(find_log_lines(ends, caplog)) == 20 + 1)  # those, and the authenticated client
    assert [line for line in caplog.messages if " more unauthenticated " in line] == [
        "180 more unauthenticated connections failed in the last minute"
    ]


def end_of(sock: socket.socket) -> str:
    """Our end of a connection, as the broker's log writes it."""
    host, port = sock.getsockname()
    return f"{host}:{port}"


def find_log_lines(ends: set[str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log lines about these connections; the broker of another test may still log."""
    return [line for line in caplog.messages if ends & set(line.split())]


def halves() -> list[tuple[str, bytes]]:
    """Yield an address and the start of a conversation that is not continued."""
    first, frame = hello(), (LOGIN_BYTES).to_bytes(4, "big") + bytes(LOGIN_BYTES - 1)
    tls = [(listener, first[:size]) for listener in TLS_LISTENERS for size in (0, 1, 5, len(first) // 2, len(first))]
    return tls + [(listener, frame[:size]) for listener in LOGIN_LISTENERS for size in (0, 3, 4, 5, len(frame))]


def test_a_thousand_silent_or_unfinished_connections_delay_no_client_and_use_little_memory(secured: Secured) -> None:
    memory = secured.broker._running._server._sockets.memory  # type: ignore[union-attr]
    crowd: list[socket.socket] = []
    with secured.wire("SASL_SSL") as known:
        assert log_in(known).error_code == 0
        try:
            for (listener, said), _ in zip(itertools.cycle(halves()), range(CROWD), strict=False):
                crowd.append(sock := socket.create_connection(address(secured, listener), timeout=20))
                sock.sendall(said)
                if len(crowd) % 50 == 0:
                    assert known.ask(MetadataRequest([])).brokers
            with secured.wire("SASL_SSL") as wire:
                assert log_in(wire).error_code == 0
                assert wire.ask(MetadataRequest([])).brokers
            assert memory.unfinished + memory.handed_out <= CROWD * LOGIN_BYTES
            sockets = both_ends_of(crowd)
        finally:
            for sock in crowd:
                sock.close()
    eventually(lambda: memory.unfinished + memory.handed_out == 0)
    eventually(lambda: not sockets & open_descriptors())


@pytest.mark.parametrize("size", [0, 8])
def test_a_client_that_sends_more_than_a_login_needs_is_disconnected(
    authority: Authority, tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    flood = (size.to_bytes(4, "big") + bytes(size)) * 100
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:  # no summary was logged yet
        secured = Secured(broker, authority, tmp_path)
        with secured.wire("SASL_SSL") as known, secured.wire("SASL_PLAINTEXT") as wire:
            log_in(known)
            wire.ask(SaslHandshakeRequest("PLAIN"), 1)
            wire.send(SaslAuthenticateRequest(b"\0nobody\0wr0ng"), 2)  # a password is hashed by another thread
            wire.socket.sendall(flood)
            assert wire.hung_up()
            assert known.ask(MetadataRequest([])).brokers
    assert any("more at a time than a login needs" in line for line in caplog.messages)


COMMANDS = {"-tls1_2": (b"R\n", b"RENEGOTIATING"), "-tls1_3": (b"K\n", b"KEYUPDATE")}
"""TLS version → the command with which OpenSSL's client requests a key update, and its output."""


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl command here")
@pytest.mark.parametrize("version", COMMANDS)
def test_repeated_key_updates_are_rejected_or_cheap(
    secured: Secured, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "LOGIN_SECONDS", 600.0)  # a suspended machine closes none of them
    with secured.wire("SASL_SSL") as known:
        assert log_in(known).error_code == 0
        if version == "-tls1_2":
            assert count_key_updates(secured, version) < 5
        else:  # once more where OpenSSL's own client ends early
            assert any(count_key_updates(secured, version) >= 5 for _ in range(3))
        assert known.ask(MetadataRequest([])).brokers


def count_key_updates(secured: Secured, version: str) -> int:
    """Return the number of key updates, of 200, until OpenSSL's client was disconnected."""
    command, said = COMMANDS[version]
    host, port = address(secured, "SASL_SSL")
    client = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"{host}:{port}", "-CAfile", secured.authority.file, version],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    asked = 0
    with client, contextlib.suppress(BrokenPipeError):
        assert client.stdin is not None
        assert client.stdout is not None
        wait_for(b"Verify return code", client.stdout)
        while asked < 200:
            asked += 1
            client.stdin.write(command)
            if not wait_for(said, client.stdout):
                break
        client.kill()
    return asked


def wait_for(word: bytes, lines: Iterable[bytes]) -> bool:
    """Read on to a line with a word, and show what is read; whether there was one."""
    for line in lines:
        print(line)
        if word in line:
            return True
    return False


def test_of_too_many_unauthenticated_connections_the_oldest_is_closed(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MOST_UNKNOWN", 20)
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        with secured.wire("SASL_PLAINTEXT") as known:
            log_in(known)
            strangers = [socket.create_connection(address(secured, "SASL_PLAINTEXT"), timeout=20) for _ in range(30)]
            assert strangers[0].recv(1) == b""
            assert known.ask(MetadataRequest([])).brokers
            with secured.wire("SASL_PLAINTEXT") as late:
                assert log_in(late).error_code == 0
            sockets = both_ends_of(strangers)
            for sock in strangers:
                sock.close()
        eventually(lambda: not sockets & open_descriptors())


def test_a_client_that_does_not_log_in_in_time_is_disconnected(
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


def test_damaged_tls_records_close_only_their_own_connection(secured: Secured) -> None:
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


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_damaged_login_messages_are_rejected_without_further_effect(secured: Secured, mechanism: str) -> None:
    chance = Random(11)
    good = {
        "PLAIN": b"\0alice\0x",
        "SCRAM-SHA-256": b"n,,n=alice,r=abcdef",
        "SCRAM-SHA-512": b"n,,n=alice,r=abcdef",
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
                last = bytearray(b"c=biws," + first.auth_bytes.partition(b",")[0] + b",p=" + b"A" * 43 + b"=")
                last[chance.randrange(len(last))] = chance.randrange(256)
                final = chance.choice([bytes(last), chance.randbytes(chance.randrange(60))])
                second = wire.ask(SaslAuthenticateRequest(final), 2)
                assert second.error_code
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert log_in(wire).error_code == 0


def test_certificates_are_reloaded_and_an_unreadable_one_changes_nothing(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (other := tmp_path / "other").mkdir()
    second = Authority(other)
    made = second.certificate()
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        store = tmp_path / "server.pem"
        with secured.wire("SSL") as before, caplog.at_level(logging.WARNING):
            assert trusts(secured, authority)
            half = store.read_text()[:900]
            for harm in (
                lambda: store.write_text("nonsense"),
                lambda: store.write_text(half),
                store.unlink,
                store.mkdir,
            ):
                harm()
                caplog.clear()
                assert trusts(secured, authority)
                assert trusts(secured, authority)
                assert len([line for line in caplog.messages if "keeping the previous ones" in line]) == 1
            store.rmdir()
            store.write_text(made.chain + made.key)
            assert trusts(secured, second)
            assert before.ask(MetadataRequest([])).brokers


def test_an_invalid_store_is_rejected_and_the_previous_one_stays(authority: Authority, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    second = Authority(elsewhere)
    here, there, other = authority.certificate(), second.certificate(), authority.certificate()
    with Broker(listen=LISTENERS, **settings_of(authority, tmp_path)) as broker:
        secured = Secured(broker, authority, tmp_path)
        stores = {
            "no private key": here.chain,
            "does not match the certificate": here.chain + other.key,
            "no certificate": "nonsense",
        }
        for reported, text in stores.items():
            store = tmp_path / "new.pem"
            store.write_text(text)
            for dry in (True, False):
                refused = change_key_store(secured, store, dry=dry)
                assert (refused.error_code, reported in (refused.error_message or "")) == (
                    ErrorCode.INVALID_REQUEST,
                    True,
                )
            assert trusts(secured, authority)
        refused = change_key_store(secured, tmp_path / "gone.pem")
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert "gone.pem: it cannot be read: No such file" in (refused.error_message or "")
        store.write_text(there.chain + there.key)
        assert change_key_store(secured, store, dry=True).error_code == 0
        assert trusts(secured, authority)
        assert change_key_store(secured, store).error_code == 0
        assert trusts(secured, second)


def change_key_store(secured: Secured, store: Path, *, dry: bool = False) -> AlterConfigsResourceResponse:
    """Return the response to a change of the key store."""
    change = AlterableConfig("listener.name.ssl.ssl.keystore.location", 0, str(store))
    with secured.wire("PLAINTEXT") as wire:
        asked = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", [change])], dry)
        answer: AlterConfigsResourceResponse
        (answer,) = wire.ask(asked).responses
    return answer


def trusts(secured: Secured, whom: Authority) -> bool:
    """True if the broker presents a certificate of this authority."""
    context = ssl.create_default_context(cafile=whom.file)
    with socket.create_connection(address(secured, "SSL"), timeout=20) as sock:
        try:
            context.wrap_socket(sock, server_hostname="127.0.0.1").close()
        except ssl.SSLCertVerificationError:
            return False
    return True


def test_an_expired_session_ends_at_the_next_request_and_continues_after_a_login(
    authority: Authority, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = settings_of(authority, tmp_path) | {"connections_max_reauth_ms": 1300, "metrics_listen": address}

    def counted(what: str) -> float:
        return metrics(address)[f"kafka_server_socket_server_metrics_{what}_total", "SASL_SSL"]

    with Broker(listen=LISTENERS, **settings) as broker:
        secured = Secured(broker, authority, tmp_path)
        with secured.wire("SASL_SSL") as wire:
            assert log_in(wire).session_lifetime_ms == 1300
            assert wire.ask(MetadataRequest([])).brokers
            eventually(lambda: is_over(wire))
        assert (counted("successful_authentication"), counted("expired_connections_killed")) == (1, 1)
        with Admin(secured.login("SCRAM-SHA-512")) as admin:
            eventually(lambda: (admin.list_topics(), counted("successful_reauthentication"))[1] >= 2)
        assert counted("successful_authentication") >= 2
        with secured.wire("SASL_SSL") as wire:
            assert log_in(wire, password="wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert (counted("failed_authentication"), counted("failed_reauthentication")) == (1, 0)


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


def test_a_distinguished_name_is_formatted_as_in_java() -> None:
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
def test_rules_map_distinguished_names_to_users(rules: str, user: str | None) -> None:
    assert map_name("CN=ALICE,OU=x", read_rules(rules)) == user


def test_a_check_whether_a_tls_port_is_open_is_no_warning(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.broker")
    socket.create_connection(address(secured, "SSL")).close()
    ended = "ended: it closed the connection without a TLS handshake"
    eventually(lambda: any(ended in record.getMessage() for record in caplog.records))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
