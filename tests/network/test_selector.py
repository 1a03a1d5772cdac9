"""Frames between two selectors over real sockets."""

from __future__ import annotations

import random
import socket
import struct
import sys
import threading
import time
import tracemalloc

import pytest

from ottla.network import Selector
from ottla.network.memory_budget import MemoryBudget
from tests.network.conftest import PATIENCE, Party, Stage, until


def raw_client(stage: Stage) -> tuple[socket.socket, Party]:
    server, listener = stage.server()
    return socket.create_connection(listener.address, PATIENCE), server


def test_frames_cross_both_ways_and_sends_are_counted(stage: Stage) -> None:
    server, channel, client = stage.pair()
    client.selector.send("up", [b"one", bytearray(b"-"), memoryview(b"two")])
    client.selector.send("up", [])
    server.selector.send(channel, [b"three"])
    until(lambda: len(server.frames) == 2 and client.frames, server, client)
    assert server.frames == [b"one-two", b""]
    assert client.frames == [b"three"]
    assert client.sent == ["up", "up"]
    assert server.sent == [channel]


def test_a_frame_may_be_sent_before_the_connection_is_established(stage: Stage) -> None:
    server, listener = stage.server()
    client = stage.party()
    client.selector.connect("up", *listener.address)
    client.selector.send("up", [b"early"])
    until(lambda: server.frames, server, client)
    assert server.frames == [b"early"]


def test_many_frames_in_one_read_are_one_polls_frames(stage: Stage) -> None:
    sock, server = raw_client(stage)
    with sock:
        sock.sendall(b"".join(struct.pack(">ii", 4, i) for i in range(1000)))
        until(lambda: len(server.frames) == 1000, server)
    assert [struct.unpack(">i", frame)[0] for frame in server.frames] == list(range(1000))


def test_a_frame_split_at_every_byte_arrives_whole(stage: Stage) -> None:
    sock, server = raw_client(stage)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in (b"hello", b"", b"world"))
    with sock:
        for i in range(len(stream)):
            sock.sendall(stream[i : i + 1])
            server.poll(0.001)
        until(lambda: len(server.frames) == 3, server)
    assert server.frames == [b"hello", b"", b"world"]


def test_fifty_megabytes_cross_both_ways_in_bounded_memory(stage: Stage) -> None:
    server, channel, client = stage.pair()
    body = random.Random(1).randbytes(50_000_000)
    tracemalloc.start()
    try:
        client.selector.send("up", [memoryview(body)])
        until(lambda: server.frames, server, client)
        server.selector.send(channel, [server.frames[0]])
        until(lambda: client.frames, server, client)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert client.frames[0] == body
    # Two received copies of 50 MB, and the old half of one during its last growth.
    assert peak < 190_000_000


def test_a_muted_channel_blocks_its_sender(stage: Stage) -> None:
    server, channel, client = stage.pair()
    server.selector.mute(channel)
    total = 200
    for _ in range(total):
        client.selector.send("up", [bytes(100_000)])
    before = -1
    while before != client.selector.queued_bytes("up"):
        before = client.selector.queued_bytes("up")
        client.poll(0.01)
        server.poll(0.01)
    assert before > 10_000_000
    assert not server.frames
    server.selector.unmute(channel)
    until(lambda: len(server.frames) == total, server, client)
    assert client.selector.queued_bytes("up") == 0
    assert client.sent == ["up"] * total


def test_a_flood_on_one_channel_does_not_delay_the_others(stage: Stage) -> None:
    server, listener = stage.server()
    flood, quiet = stage.party(), stage.party()
    flood.selector.connect("flood", *listener.address)
    quiet.selector.connect("quiet", *listener.address)
    until(lambda: len(server.accepted) == 2 and flood.connected and quiet.connected, server, flood, quiet)
    flood.selector.send("flood", [bytes(90_000_000)])
    until(lambda: flood.selector.queued_bytes("flood") < 80_000_000, server, flood)
    quiet.selector.send("quiet", [b"me too"])
    until(lambda: server.frames, server, flood)
    assert server.frames == [b"me too"]
    assert flood.selector.queued_bytes("flood") > 0


def test_another_thread_wakes_a_poll_that_waits_for_ever(stage: Stage) -> None:
    party = stage.party()
    waker = threading.Thread(target=party.selector.wakeup)
    waker.start()
    party.selector.poll(None)
    waker.join()
    for _ in range(100_000):
        party.selector.wakeup()
    party.selector.poll(None)
    start = time.monotonic()
    party.selector.poll(0.02)
    assert time.monotonic() - start > 0.015, "old alarms must not ring twice"


def test_the_selector_can_be_watched_by_its_descriptor(stage: Stage) -> None:
    server, channel, client = stage.pair()
    assert isinstance(server.selector.fileno(), int)
    client.selector.send("up", [b"x"])
    until(lambda: server.frames, server, client)
    assert server.senders == [channel]


def test_a_channel_knows_both_of_its_addresses(stage: Stage) -> None:
    server, channel, client = stage.pair()
    assert server.selector.local(channel) == client.selector.peer("up")
    assert server.selector.peer(channel) == client.selector.local("up")
    client.selector.close("up")
    until(lambda: server.gone, server)
    assert server.selector.local(channel)[0] == "127.0.0.1"
    server.selector.poll(0)
    with pytest.raises(KeyError):
        server.selector.local(channel)


def test_a_channel_id_in_use_cannot_be_connected_again(stage: Stage) -> None:
    _, _, client = stage.pair()
    with pytest.raises(ValueError, match="'up' is already open"):
        client.selector.connect("up", "127.0.0.1", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="epoll alone tells that a peer of a stalled connection has gone")
def test_the_memory_of_an_incomplete_request_is_released_as_soon_as_its_client_disconnects() -> None:
    memory = MemoryBudget(300_000)
    server = Party(Selector(memory=memory))
    listener = server.selector.listen("127.0.0.1", 0)
    clients = [socket.create_connection(listener.address, PATIENCE) for _ in range(4)]
    try:
        for client in clients:
            client.sendall(struct.pack(">i", 10_000_000) + bytes(200_000))
        until(lambda: memory.is_exhausted and len(server.accepted) == 4, server)
        for _ in range(20):
            server.poll(0.001)
        for client in clients:
            client.close()
        until(lambda: len(server.gone) == 4, server)
        assert memory.unfinished == 0
        assert set(server.gone.values()) <= {
            f"the peer closed the connection when {count} of 10000000 bytes of a frame had arrived"
            for count in range(200_001)
        }
    finally:
        for client in clients:
            client.close()
        server.selector.close_all()


@pytest.mark.skipif(sys.platform != "linux", reason="epoll alone tells that a peer of a stalled connection has gone")
def test_a_request_is_taken_whole_though_its_client_sends_no_more_while_memory_is_short() -> None:
    memory = MemoryBudget(300_000)
    server = Party(Selector(memory=memory))
    listener = server.selector.listen("127.0.0.1", 0)
    half = socket.create_connection(listener.address, PATIENCE)
    whole = socket.create_connection(listener.address, PATIENCE)
    try:
        half.sendall(struct.pack(">i", 10_000_000) + bytes(400_000))
        until(lambda: memory.is_exhausted, server)
        sender = threading.Thread(target=whole.sendall, args=(struct.pack(">i", 500_000) + bytes(500_000),))
        sender.start()
        for _ in range(20):
            server.poll(0.001)
        until(lambda: not sender.is_alive(), server)
        whole.shutdown(socket.SHUT_WR)
        for _ in range(20):
            server.poll(0.001)
        half.close()
        until(lambda: server.frames, server)
        assert len(server.frames[0]) == 500_000
    finally:
        half.close()
        whole.close()
        server.selector.close_all()
