"""TLS on the selector's channels, against Python's ssl on the other side, with certificates made here."""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.config import Password
from ottla.model import FileSlice
from ottla.network.key_store import KeyStore, TrustStore
from ottla.network.refusal import PeerRefusal
from ottla.network.tls import TlsChannel
from ottla.network.tls_context import TlsContexts, TlsSettings
from tests.certificates import Authority
from tests.network.conftest import Party, Stage, until
from tests.network.tls_server import Line, echo, tls_server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def contexts(authority: Authority, **settings: Any) -> TlsContexts:
    return TlsContexts(TlsSettings(trust=TrustStore(location=authority.file), **settings))


def connected(stage: Stage, port: int, made: TlsContexts, *, host: str = "127.0.0.1", timeout: float = 20) -> Party:
    party = stage.party(make_channel=partial(TlsChannel, made))
    party.selector.connect("it", host, port, timeout=timeout)
    return party


def joined(parts: list[memoryview]) -> list[bytes]:
    return [bytes(part) for part in parts]


def end_of(party: Party) -> str:
    until(lambda: "it" in party.gone, party)
    return party.gone["it"]


def test_frames_of_all_sizes_are_sent_in_both_directions_in_order(stage: Stage, authority: Authority) -> None:
    chance = Random(7)
    frames = [chance.randbytes(size) for size in (0, 1, 5, 16_379, 16_384, 65_536, 300_000, 3_000_000, 2)]
    with tls_server(authority.server_context()) as port:
        party = connected(stage, port, contexts(authority))
        for frame in frames:
            party.selector.send("it", [frame[:7], memoryview(frame)[7:]])
        until(lambda: len(party.frames) == len(frames), party)
    assert joined(party.frames) == frames
    assert party.sent == ["it"] * len(frames)
    assert party.connected == ["it"]


def test_a_piece_of_a_file_is_encrypted_like_everything_else(
    stage: Stage, authority: Authority, tmp_path: Path
) -> None:
    data = Random(8).randbytes(200_000)
    path = tmp_path / "data"
    path.write_bytes(data)
    with tls_server(authority.server_context()) as port, path.open("rb") as file:
        party = connected(stage, port, contexts(authority))
        party.selector.send("it", [b"head", FileSlice(file, 1000, 150_000), b"tail"])
        until(lambda: party.frames, party)
    assert joined(party.frames) == [b"head" + data[1000:151_000] + b"tail"]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_records_may_come_in_any_pieces(stage: Stage, authority: Authority, size: int) -> None:
    def pieces(data: bytes) -> Iterator[bytes]:
        return (data[start : start + size] for start in range(0, len(data), size))

    def serve(line: Line) -> None:
        line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.change = pieces
        echo(line)

    frames = [b"a", b"b" * 2000, b"", b"c" * 700]
    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority))
        for frame in frames:
            party.selector.send("it", [frame])
        until(lambda: len(party.frames) == len(frames), party)
    assert joined(party.frames) == frames


@pytest.mark.parametrize("seed", range(25))
def test_damage_in_transit_closes_the_connection_with_one_reason(stage: Stage, authority: Authority, seed: int) -> None:
    chance = Random(seed)
    in_handshake = seed % 2 == 0

    def damaged(data: bytes) -> Iterator[bytes]:
        changed = bytearray(data)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        yield bytes(changed)

    def serve(line: Line) -> None:
        if in_handshake:
            line.change = damaged
        line.shake_hands()
        line.frame()
        line.change = damaged
        line.send(b"answer" * 100)
        line.exactly(1)

    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority), timeout=2)
        party.selector.send("it", [b"question"])
        reason = end_of(party)
    assert party.frames == []
    assert reason
    assert "\n" not in reason
    assert "Traceback" not in reason


@pytest.mark.parametrize("seed", range(10))
def test_garbage_for_an_answer_ends_the_connection(stage: Stage, authority: Authority, seed: int) -> None:
    def serve(line: Line) -> None:
        line.sock.recv(100)
        line.sock.sendall(Random(seed).randbytes(400))

    with tls_server(authority.server_context(), serve) as port:
        assert end_of(connected(stage, port, contexts(authority)))


def test_a_close_notify_of_the_peer_is_an_orderly_end(stage: Stage, authority: Authority) -> None:
    def serve(line: Line) -> None:
        line.shake_hands()
        line.send(line.frame())
        line.say_farewell()
        line.sock.recv(100)

    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority))
        party.selector.send("it", [b"x"])
        assert end_of(party) == ""
    assert joined(party.frames) == [b"x"]


def test_a_close_notify_inside_a_frame_reports_the_missing_bytes(stage: Stage, authority: Authority) -> None:
    def serve(line: Line) -> None:
        line.shake_hands()
        line.tls.write(struct.pack(">i", 100) + b"only this")
        line.say_farewell()
        line.sock.recv(100)

    with tls_server(authority.server_context(), serve) as port:
        assert "9 of 100 bytes" in end_of(connected(stage, port, contexts(authority)))


def test_closing_sends_close_notify(stage: Stage, authority: Authority) -> None:
    ends: list[object] = []

    def serve(line: Line) -> None:
        line.shake_hands()
        line.send(line.frame())
        ends.append(line._do(partial(line.tls.read, 10)))

    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority))
        party.selector.send("it", [b"x"])
        until(lambda: party.frames, party)
        party.selector.close("it")
        until(lambda: ends, party)
    assert ends == [b""]


def test_a_disowned_channel_sends_no_close_notify(stage: Stage, authority: Authority) -> None:
    ends: list[object] = []

    def serve(line: Line) -> None:
        line.shake_hands()
        line.send(line.frame())
        try:
            line.exactly(1)
        except (EOFError, OSError) as error:
            ends.append((type(error), line.incoming.pending))

    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority))
        party.selector.send("it", [b"x"])
        until(lambda: party.frames, party)
        stage.parties.remove(party)
        party.selector.disown()
        until(lambda: ends)
    assert ends == [(EOFError, 0)]


def test_a_peer_that_never_answers_the_handshake_is_disconnected(stage: Stage, authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        party = connected(stage, listener.getsockname()[1], contexts(authority), timeout=0.2)
        assert end_of(party) == "connection timed out"


def test_a_peer_that_does_not_read_costs_the_queue_and_no_more(stage: Stage, authority: Authority) -> None:
    def serve(line: Line) -> None:
        line.shake_hands()
        line.send(b"ready")
        held.append(line.sock)
        stop.wait(30)

    import threading

    held: list[socket.socket] = []
    stop = threading.Event()
    with tls_server(authority.server_context(), serve) as port:
        party = connected(stage, port, contexts(authority))
        until(lambda: party.frames, party)
        party.selector.send("it", [bytes(20_000_000)])
        for _ in range(20):
            party.poll(0.001)
        assert 0 < party.selector.queued_bytes("it") <= 20_000_004
        assert party.sent == []
        stop.set()
        end_of(party)


CASES: dict[str, tuple[Callable[[Authority], ssl.SSLContext], str]] = {
    "expired": (lambda a: a.server_context(a.certificate(expired=True)), "has expired"),
    "another name": (lambda a: a.server_context(a.certificate("kafka.example.org")), "is not for '127.0.0.1'"),
    "another authority": (lambda a: Authority(a.folder).server_context(), "not trusted here"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_untrusted_certificate_is_one_error_with_the_remedy(stage: Stage, tmp_path: Path, case: str) -> None:
    authority = Authority(tmp_path)
    made = contexts(authority)
    make, reported = CASES[case]
    with tls_server(make(authority)) as port:
        party = connected(stage, port, made)
        reason = end_of(party)
    assert isinstance(reason, PeerRefusal)
    assert reported in reason
    assert ": " in reason
    assert party.connected == []


def test_host_name_checks_can_be_disabled_and_certificate_checks_cannot(stage: Stage, authority: Authority) -> None:
    other = authority.certificate("kafka.example.org")
    with tls_server(authority.server_context(other)) as port:
        party = connected(stage, port, contexts(authority, check_name=False))
        until(lambda: party.connected, party)
    stranger = Authority(authority.folder.parent)
    with tls_server(stranger.server_context()) as port:
        assert "not trusted" in end_of(connected(stage, port, TlsContexts(TlsSettings(check_name=False))))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_tls_1_2_and_1_3_are_supported_and_no_older_version(stage: Stage, authority: Authority, version: str) -> None:
    made = contexts(authority, versions=(version,))
    with tls_server(authority.server_context()) as port:
        party = connected(stage, port, made)
        until(lambda: party.connected, party)
        channel = party.selector._channels["it"]
        assert isinstance(channel, TlsChannel)
        assert channel._tls is not None
        assert channel._tls.version() == version
    options = contexts(authority).current_context()
    assert options.minimum_version is ssl.TLSVersion.TLSv1_2
    assert options.options & ssl.OP_NO_RENEGOTIATION


def test_no_common_tls_version_is_a_clear_error(stage: Stage, authority: Authority) -> None:
    server = authority.server_context()
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls_server(server) as port:
        reason = end_of(connected(stage, port, contexts(authority, versions=("TLSv1.3",))))
    assert isinstance(reason, PeerRefusal)
    assert "ssl.enabled.protocols" in reason


def test_the_suites_may_be_named_as_java_names_them(stage: Stage, authority: Authority) -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    made = contexts(authority, versions=("TLSv1.2",), cipher_suites=suites)
    with tls_server(authority.server_context()) as port:
        party = connected(stage, port, made)
        until(lambda: party.connected, party)
        tls = party.selector._channels["it"]._tls  # type: ignore[attr-defined]
        assert tls.cipher()[0] in ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384")


@pytest.mark.parametrize("answer", [b"\0\0\0\x04abcd", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_plaintext_port_is_detected_by_its_response(stage: Stage, authority: Authority, answer: bytes) -> None:
    def serve(line: Line) -> None:
        line.sock.recv(1000)
        line.sock.sendall(answer)
        line.sock.recv(1000)

    with tls_server(authority.server_context(), serve) as port:
        reason = end_of(connected(stage, port, contexts(authority)))
    assert isinstance(reason, PeerRefusal)
    assert "security.protocol=PLAINTEXT" in reason


def test_a_port_that_closes_during_the_handshake_is_reported_as_possibly_plaintext(
    stage: Stage, authority: Authority
) -> None:
    with tls_server(authority.server_context(), lambda line: None) as port:
        reason = end_of(connected(stage, port, contexts(authority)))
    assert "in the TLS handshake: it may be a plaintext port" in reason
    assert not isinstance(reason, PeerRefusal)


def mine(authority: Authority, tmp_path: Path, kind: str) -> KeyStore:
    cert = authority.certificate("me")
    if kind == "PKCS12":
        path = tmp_path / "me.p12"
        path.write_bytes(cert.pkcs12("secret"))
        return KeyStore(location=str(path), store_password=Password("secret"))
    if kind == "one file":
        path = tmp_path / "me.pem"
        path.write_text(cert.encrypted_key("secret") + cert.chain)
        return KeyStore(location=str(path), key_password=Password("secret"))
    if kind == "two files":
        (tmp_path / "cert").write_text(cert.chain)
        (tmp_path / "key").write_text(cert.key)
        return KeyStore(chain_location=str(tmp_path / "cert"), key_location=str(tmp_path / "key"))
    return KeyStore(chain=cert.chain, key=Password(cert.key))


@pytest.mark.parametrize("kind", ["PKCS12", "one file", "two files", "text"])
def test_a_broker_that_requests_a_certificate_gets_ours(
    stage: Stage, authority: Authority, tmp_path: Path, kind: str
) -> None:
    with tls_server(authority.server_context(asks=True)) as port:
        party = connected(stage, port, contexts(authority, own=mine(authority, tmp_path, kind)))
        party.selector.send("it", [b"x"])
        until(lambda: party.frames, party)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_missing_client_certificate_is_one_clear_error(stage: Stage, authority: Authority, version: str) -> None:
    with tls_server(authority.server_context(asks=True)) as port:
        party = connected(stage, port, contexts(authority, versions=(version,)))
        party.selector.send("it", [b"x"])
        reason = end_of(party)
    assert isinstance(reason, PeerRefusal)
    assert "ssl.keystore.location" in reason


def torn(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: len(text) // 2])


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [Path.unlink, torn, folder], ids=["gone", "torn", "a folder"])
def test_damaged_certificate_files_are_logged_once_and_reloaded_when_they_are_valid(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
) -> None:
    path, mine = tmp_path / "trusted.pem", authority.certificate()
    path.write_text(authority.pem)
    own = KeyStore(location=authority.write("mine.pem", mine.chain + mine.key))
    made = TlsContexts(TlsSettings(trust=TrustStore(location=str(path)), own=own))
    before = made.current_context()
    harm(path)
    assert [made.current_context() for _ in range(3)] == [before] * 3
    assert caplog.text.count("keeping the previous ones") == 1
    if path.is_dir():
        path.rmdir()
    path.write_text(authority.pem)
    again = made.current_context()
    assert again is not before
    assert made.current_context() is again
    assert caplog.text.count("keeping the previous ones") == 1


def test_a_file_that_became_another_is_read_though_its_size_and_time_are_the_same(tmp_path: Path) -> None:
    (path := tmp_path / "trusted.pem").write_text(Authority(tmp_path).pem)
    made, times = TlsContexts(TlsSettings(trust=TrustStore(location=str(path)))), path.stat()
    before = made.current_context()
    path.chmod(0o640)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert made.current_context() is not before


def test_certificates_are_read_again_when_their_files_change(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = Authority(tmp_path), Authority(tmp_path)
    path = old.write("trusted.pem", old.pem)
    made = TlsContexts(TlsSettings(trust=TrustStore(location=path)))
    with tls_server(new.server_context()) as port:
        assert "not trusted" in end_of(connected(stage, port, made))
        Path(path).write_text("half of a fi")
        os.utime(path, ns=(1, 1))
        assert "not trusted" in end_of(connected(stage, port, made))
        assert "not trusted" in end_of(connected(stage, port, made))
        assert caplog.text.count("keeping the previous ones") == 1
        Path(path).write_text(new.pem)
        os.utime(path, ns=(2, 2))
        party = connected(stage, port, made)
        until(lambda: party.connected, party)
