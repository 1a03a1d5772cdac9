"""The splitter alone: bytes in, frames out."""

from __future__ import annotations

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ProtocolError
from ottla.network.frames import DIRECT_BYTES, FrameSplitter


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    splitter = FrameSplitter(1 << 20)
    frames: list[memoryview] = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        splitter.feed(memoryview(data)[start:end], frames)
    return [bytes(frame) for frame in frames]


@given(st.lists(st.binary(max_size=20), max_size=6), st.data())
def test_frames_come_out_however_the_stream_is_cut(frames: list[bytes], data: st.DataObject) -> None:
    stream = framed(*frames)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert split(stream, cuts) == frames


def test_a_stream_in_single_bytes_gives_the_same_frames() -> None:
    frames = [b"", b"a", b"bc" * 50, b""]
    stream = framed(*frames)
    assert split(stream, list(range(len(stream)))) == frames


def test_frames_keep_their_bytes_when_the_receive_buffer_is_used_again() -> None:
    splitter = FrameSplitter(100)
    scratch = bytearray(framed(b"first", b"second"))
    frames: list[memoryview] = []
    splitter.feed(memoryview(scratch), frames)
    scratch[:] = bytes(len(scratch))
    assert frames == [b"first", b"second"]
    assert not any(frame.readonly for frame in frames)


def test_a_big_frame_is_received_into_memory_of_its_own() -> None:
    body = bytes(range(256)) * 4000
    splitter = FrameSplitter(len(body))
    frames: list[memoryview] = []
    splitter.feed(memoryview(framed(body)[:10]), frames)
    taken = 6
    while (space := splitter.space()) is not None:
        with space:
            count = min(50_000, len(space))
            space[:count] = body[taken : taken + count]
        splitter.advance(count, frames)
        taken += count
    assert len(body) - taken < DIRECT_BYTES
    splitter.feed(memoryview(body[taken:] + framed(b"next")), frames)
    assert frames == [body, b"next"]


def test_memory_grows_with_what_arrives_not_with_what_is_announced() -> None:
    splitter = FrameSplitter(1 << 30)
    tracemalloc.start()
    try:
        splitter.feed(memoryview(struct.pack(">i", 1 << 30) + bytes(1000)), [])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n", "looks like HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "looks like TLS"),
        (b"\x7f\xff\xff\xff", "2147483647 bytes was announced, more than the 1000 allowed"),
        (b"\xff\xff\xff\xff", "-1 bytes was announced"),
        (struct.pack(">i", 1001), "1001 bytes was announced"),
    ],
)
def test_garbage_is_refused_with_a_reason_after_the_frames_before_it(garbage: bytes, words: str) -> None:
    for cut in range(1, 5):
        frames: list[memoryview] = []
        splitter = FrameSplitter(1000)
        data = framed(b"good") + garbage
        splitter.feed(memoryview(data)[: 8 + cut - 1], frames)
        with pytest.raises(ProtocolError, match=words):
            splitter.feed(memoryview(data)[8 + cut - 1 :], frames)
        assert frames == [b"good"]


def test_what_is_unfinished_is_told() -> None:
    splitter = FrameSplitter(1000)
    assert splitter.unfinished() == ""
    splitter.feed(memoryview(b"\0"), [])
    assert splitter.unfinished() == "a part of a frame's length had arrived"
    splitter.feed(memoryview(b"\0\0\x09half"), [])
    assert splitter.unfinished() == "4 of 9 bytes of a frame had arrived"
