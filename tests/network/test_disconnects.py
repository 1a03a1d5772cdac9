"""Every way in which a connection ends has a reason, and no other connection is affected."""

from __future__ import annotations

import gc
import random
import socket
import struct
import tempfile
import weakref

import pytest

from ottla.clock import ManualClock
from ottla.free_ports import free_port
from ottla.model import FileSlice
from ottla.network import resolver
from tests.network.conftest import PATIENCE, Party, Stage, until


def raw_client(stage: Stage) -> tuple[socket.socket, Party]:
    server, listener = stage.server(max_frame_bytes=1_000_000)
    sock = socket.create_connection(listener.address, PATIENCE)
    until(lambda: server.accepted, server)
    return sock, server


def reset(sock: socket.socket) -> None:
    """Close with a TCP reset instead of a FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def test_an_orderly_close_has_no_reason(stage: Stage) -> None:
    server, channel, client = stage.pair()
    client.selector.close("up")
    until(lambda: server.gone, server)
    assert server.gone == {channel: ""}
    client.poll(0)
    assert client.gone == {}


def test_frames_before_an_orderly_close_are_not_lost(stage: Stage) -> None:
    sock, server = raw_client(stage)
    sock.sendall(struct.pack(">i", 2) + b"ok")
    sock.close()
    until(lambda: server.gone, server)
    assert server.frames == [b"ok"]


def test_a_peer_that_closes_in_the_middle_of_a_frame_is_a_reason(stage: Stage) -> None:
    sock, server = raw_client(stage)
    sock.sendall(struct.pack(">i", 100) + b"half")
    sock.close()
    until(lambda: server.gone, server)
    assert "4 of 100 bytes of a frame" in server.gone[server.accepted[0]]


def test_a_reset_is_a_reason(stage: Stage) -> None:
    sock, server = raw_client(stage)
    reset(sock)
    until(lambda: server.gone, server)
    assert server.gone[server.accepted[0]] == "the peer reset the connection"


def test_a_muted_channel_notices_a_reset_and_does_not_spin(stage: Stage) -> None:
    if stage.poller().__class__.__name__ == "SelectorsPoller":
        pytest.skip("selectors cannot watch a descriptor for nothing: a reset is seen at unmute")
    sock, server = raw_client(stage)
    server.selector.mute(server.accepted[0])
    reset(sock)
    until(lambda: server.gone, server)
    assert server.gone[server.accepted[0]] == "the peer reset the connection"


def test_a_half_closed_peer_still_gets_what_is_queued_for_it(stage: Stage) -> None:
    sock, server = raw_client(stage)
    channel = server.accepted[0]
    body = bytes(20_000_000)
    server.selector.send(channel, [body])
    sock.shutdown(socket.SHUT_WR)
    until(lambda: server.selector._channels[channel].half_closed, server)
    received = 0
    with sock:
        while received < len(body) + 4:
            server.poll(0)
            received += len(sock.recv(1 << 20))
        until(lambda: server.gone, server)
    assert server.gone == {channel: ""}
    assert server.sent == [channel]


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "looks like HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "looks like TLS"),
        (struct.pack(">i", 2_000_000_000), "2000000000 bytes was announced, more than the 1000000 allowed"),
        (b"\xfe" + random.Random(7).randbytes(5000), "not Kafka's protocol"),
    ],
)
def test_garbage_closes_its_connection_and_no_other(stage: Stage, garbage: bytes, words: str) -> None:
    sock, server = raw_client(stage)
    bad = server.accepted[0]
    client = stage.party()
    client.selector.connect("up", *server.selector.local(bad))
    sock.sendall(garbage)
    until(lambda: server.gone and client.connected, server, client)
    client.selector.send("up", [b"still here"])
    until(lambda: server.frames, server, client)
    assert list(server.gone) == [bad]
    assert words in server.gone[bad]
    assert server.frames == [b"still here"]
    sock.close()


def test_a_refused_connection_is_a_reason(stage: Stage) -> None:
    client = stage.party()
    client.selector.connect("up", "127.0.0.1", free_port())
    client.selector.send("up", [b"into the void"])
    until(lambda: client.gone, client)
    assert client.gone == {"up": "connection refused"}


def test_a_name_that_cannot_be_resolved_is_a_reason(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: object) -> list[resolver.ResolvedAddress]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    client = stage.party()
    client.selector.connect("nonsense", "a..b", 9092)
    client.selector.connect("port", "127.0.0.1", 99_999)
    monkeypatch.setattr(resolver, "lookup_addresses", no_such_name)
    client.selector.connect("name", "broker.invalid", 9092)
    until(lambda: len(client.gone) == 3, client)
    assert client.gone["name"] == "cannot resolve the host name 'broker.invalid': Name or service not known"
    assert "a..b" in client.gone["nonsense"]
    assert client.gone["port"]


def test_the_second_address_of_a_name_is_tried(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    server, listener = stage.server()
    dead = resolver.ResolvedAddress(socket.AF_INET, ("127.0.0.1", free_port()))
    alive = resolver.ResolvedAddress(socket.AF_INET, listener.address)
    monkeypatch.setattr(resolver, "lookup_addresses", lambda *_: [dead, alive])
    client = stage.party()
    client.selector.connect("up", "two-homes.test", 9092)
    until(lambda: client.connected and server.accepted, client, server)
    assert client.gone == {}


def test_a_connection_that_takes_too_long_is_a_reason(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    client = stage.party(clock=clock)
    monkeypatch.setattr(resolver, "resolve", lambda *_: None)
    monkeypatch.setattr("ottla.network.selector.resolve", lambda *_: None)
    client.selector.connect("slow", "slow.test", 9092, timeout=10)
    client.poll(0)
    assert client.gone == {}
    clock.advance(10)
    client.poll(0)
    assert client.gone == {"slow": "connection timed out"}


def test_closing_a_channel_releases_the_files_queued_on_it(stage: Stage) -> None:
    server, channel, client = stage.pair()
    with tempfile.TemporaryFile() as file:
        file.truncate(50_000_000)
        part = FileSlice(Held(file.fileno()), 0, 50_000_000)
        held = weakref.ref(part.file)
        server.selector.send(channel, [part])
        del part
        gc.collect()
        assert held() is not None
        server.selector.close(channel)
        gc.collect()
        assert held() is None
    until(lambda: client.gone, client)
    assert "bytes of a frame" in client.gone["up"]


def test_a_frame_for_a_closed_channel_is_dropped(stage: Stage) -> None:
    server, _, client = stage.pair()
    client.selector.close("up")
    client.selector.send("up", [b"x"])
    client.selector.mute("up")
    client.selector.close("up")
    assert client.selector.queued_bytes("up") == 0
    until(lambda: server.gone, server)


def test_sending_to_a_peer_that_reset_is_reported_by_the_next_poll(stage: Stage) -> None:
    sock, server = raw_client(stage)
    channel = server.accepted[0]
    server.selector.mute(channel)
    reset(sock)
    for _ in range(10_000):
        server.selector.send(channel, [bytes(1000)])
    server.selector.poll(None)
    assert server.selector.disconnected == {channel: "the peer reset the connection"}


class Held:
    """A substitute for an open file."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        return self.fd
