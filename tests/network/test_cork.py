"""Small frames that wait for each other and leave together."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from ottla.model import FileSlice
from ottla.network.selector import Selector
from ottla.network.send_queue import SMALL_BYTES, SendQueue
from tests.network.conftest import PATIENCE, Stage, until


class Counting:
    """A socket that counts calls and takes `room` bytes of each."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room, self.calls, self.data = room, 0, b""

    def sendmsg(self, buffers: list[Any], *_: object) -> int:
        self.calls += 1
        data = b"".join(bytes(each) for each in buffers)[: self.room]
        self.data += data
        return len(data)

    def send(self, data: bytes) -> int:
        if not self.room:
            raise BlockingIOError
        return self.sendmsg([data])


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def test_corked_data_is_sent_in_one_piece_when_uncorked(stage: Stage) -> None:
    server, channel, client = stage.pair()
    server.selector.cork(channel)
    for frame in (b"one", b"", b"three"):
        server.selector.send(channel, [frame])
    server.poll(0)
    client.poll(0)
    assert client.frames == []
    assert server.selector.queued_bytes(channel) == 0, "the socket refused nothing"
    server.selector.uncork(channel)
    until(lambda: len(client.frames) == 3, server, client)
    assert client.frames == [b"one", b"", b"three"]
    assert server.sent == [channel] * 3


@pytest.mark.parametrize("frames", [[b"one"], [b"one", b"two"]])
def test_a_half_close_while_data_is_corked_is_delayed(stage: Stage, frames: list[bytes]) -> None:
    server, channel, client = stage.pair()
    server.selector.cork(channel)
    for frame in frames:
        server.selector.send(channel, [frame])
    server.selector.end_sending(channel)
    server.selector.uncork(channel)
    until(lambda: client.frames == frames, server, client)
    assert not client.gone


def test_a_peer_that_half_closed_receives_the_corked_data(stage: Stage) -> None:
    server, channel, client = stage.pair()
    server.selector.cork(channel)
    server.selector.send(channel, [b"kept"])
    client.selector.end_sending("up")
    until(lambda: (held := server.selector.channel(channel)) is not None and held.half_closed, server, client)
    server.selector.uncork(channel)
    until(lambda: client.frames == [b"kept"] and server.gone, server, client)


def test_corked_data_is_dropped_with_its_channel(stage: Stage) -> None:
    server, channel, client = stage.pair()
    server.selector.cork(channel)
    server.selector.send(channel, [b"never"])
    server.selector.close(channel)
    server.selector.uncork(channel)
    until(lambda: client.gone, server, client)
    assert client.frames == []


def test_uncorking_a_channel_that_is_not_corked_or_closed_does_nothing(stage: Stage) -> None:
    server, channel, client = stage.pair()
    server.selector.uncork(channel)
    server.selector.cork(channel)
    server.selector.uncork(channel)
    server.selector.send(channel, [b"at once"])
    until(lambda: client.frames == [b"at once"], server, client)
    server.selector.close(channel)
    server.selector.cork(channel)
    server.selector.uncork(channel)


def test_a_queue_writes_several_frames_in_one_call_and_counts_them() -> None:
    queue, sock = SendQueue(), Counting()
    for frame in (b"a", b"", b"bcd"):
        queue.push([frame])
    assert queue.write_to(sock, 1 << 20) == 3  # type: ignore[arg-type]
    assert (sock.calls, sock.data) == (1, framed(b"a", b"", b"bcd"))
    assert not queue
    assert queue.queued_bytes == 0


@pytest.mark.parametrize("room", [1, 3, 4, 5, 6, 9])
def test_frames_that_are_taken_bit_by_bit_are_counted_once(room: int) -> None:
    queue, sock = SendQueue(), Counting(room)
    frames = (b"a", b"", b"bcd", b"\0" * 9)
    for frame in frames:
        queue.push([frame])
    counts = []
    while queue:
        counts.append(queue.write_to(sock, 1))  # type: ignore[arg-type]
        assert queue.queued_bytes == len(framed(*frames)) - len(sock.data)
    assert sum(counts) == len(frames)
    assert sock.data == framed(*frames)


@pytest.mark.parametrize("room", [0, 1, 3, 4, 6, 12, 99])
def test_a_small_frame_is_sent_alone_and_its_unsent_rest_waits(room: int, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    queue, sock = SendQueue(), Counting(room)
    with (tmp_path / "log").open("rb") as file:
        parts: list[Any] = [b"a", FileSlice(file, 2, 5), FileSlice(file, 9, 0), memoryview(b"bc"), b""]
        completed = queue.send_alone(sock, [parts])  # type: ignore[arg-type]
    whole = framed(b"a23456bc")
    assert completed == (1 if room >= len(whole) else 0)
    assert queue.queued_bytes == len(whole) - len(sock.data)
    sock.room = 99
    assert queue.write_to(sock, 1 << 20) == 1 - completed  # type: ignore[arg-type]
    assert sock.data == whole
    assert not queue


@pytest.mark.parametrize("room", [0, 1, 4, 5, 8, 9, 10, 13, 14, 99])
def test_small_frames_are_sent_together_and_each_is_counted_once(room: int) -> None:
    queue, sock = SendQueue(), Counting(room)
    frames = [[b"a"], [], [b"b", b"c"]]
    completed = queue.send_alone(sock, frames)  # type: ignore[arg-type]
    whole = framed(b"a", b"", b"bc")
    assert completed == sum(room >= end for end in (5, 9, 15))
    assert queue.queued_bytes == len(whole) - len(sock.data)
    sock.room = 99
    assert queue.write_to(sock, 1 << 20) == 3 - completed  # type: ignore[arg-type]
    assert sock.data == whole
    assert not queue


def test_a_frame_that_is_not_small_is_not_sent_alone() -> None:
    queue, sock = SendQueue(), Counting()
    assert queue.send_alone(sock, [[b"a", bytes(SMALL_BYTES)]]) == -1  # type: ignore[arg-type]
    assert (sock.calls, bool(queue)) == (0, False)


@pytest.mark.parametrize(("reports_early", "expected"), [(True, [7]), (False, [])])
def test_frames_that_were_sent_at_once_are_not_reported_if_not_requested(
    reports_early: bool, expected: list[int]
) -> None:
    listening = Selector()
    selector = Selector(reports_early=reports_early)
    try:
        listener = listening.listen("127.0.0.1", 0)
        selector.connect(7, *listener.address)
        while not selector.connected:
            selector.poll(PATIENCE)
        selector.send(7, [b"gone at once"])
        selector.poll(0)
        assert selector.completed_sends == expected
    finally:
        selector.close_all()
        listening.close_all()
