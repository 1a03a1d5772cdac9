"""The splitter alone: bytes in, frames out."""

from __future__ import annotations

import random
import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ProtocolError
from ottla.network.frames import (
    DIRECT_BYTES,
    NEWCOMERS_FRAMES,
    NEWCOMERS_PIECE_BYTES,
    FrameSplitter,
    UnauthenticatedSplitter,
)


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
    while (space := splitter.free_space()) is not None:
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


def test_an_unfinished_frame_is_reported() -> None:
    splitter = FrameSplitter(1000)
    assert splitter.describe_unfinished() == ""
    splitter.feed(memoryview(b"\0"), [])
    assert splitter.describe_unfinished() == "a part of a frame's length had arrived"
    splitter.feed(memoryview(b"\0\0\x09half"), [])
    assert splitter.describe_unfinished() == "4 of 9 bytes of a frame had arrived"


def received(splitter: FrameSplitter, body: bytes) -> memoryview:
    """The frame with `body`, received as the selector does."""
    frames: list[memoryview] = []
    stream = memoryview(framed(body))
    splitter.feed(stream[: 10 + DIRECT_BYTES], frames)
    taken = 10 + DIRECT_BYTES
    while (space := splitter.free_space()) is not None:
        with space:
            count = min(len(space), len(stream) - taken)
            space[:count] = stream[taken : taken + count]
        splitter.advance(count, frames)
        taken += count
    splitter.feed(stream[taken:], frames)
    (frame,) = frames
    return frame


def test_the_memory_of_a_big_frame_is_reused_once_it_is_unreferenced() -> None:
    splitter = FrameSplitter(1 << 20)
    first = received(splitter, b"a" * 300_000)
    memory = first.obj
    del first
    second = received(splitter, b"b" * 290_000)
    assert second == b"b" * 290_000
    assert second.obj is memory


def test_the_memory_of_a_frame_is_left_alone_while_a_piece_of_it_is_in_use() -> None:
    splitter = FrameSplitter(1 << 20)
    piece = received(splitter, b"a" * 300_000)[1000:1010]
    for _ in range(20):
        received(splitter, b"b" * 300_000)
    assert piece == b"a" * 10


@given(st.lists(st.tuples(st.integers(60_000, 200_000), st.booleans()), max_size=12))
def test_retained_and_released_frames_never_share_memory(sizes: list[tuple[int, bool]]) -> None:
    splitter = FrameSplitter(1 << 20)
    kept: list[tuple[memoryview, bytes]] = []
    for number, (size, keep) in enumerate(sizes):
        body = bytes([number]) * (size + DIRECT_BYTES)
        frame = received(splitter, body)
        assert frame == body
        if keep:
            kept.append((frame, body))
    assert all(frame == body for frame, body in kept)


@given(st.lists(st.integers(0, 40), max_size=60), st.data())
def test_little_memory_is_held_for_a_new_connection_whatever_it_sends(sizes: list[int], data: st.DataObject) -> None:
    most = 50
    splitter = UnauthenticatedSplitter(most)
    stream = framed(*(bytes(size) for size in sizes))
    frames: list[memoryview] = []
    try:
        while stream:
            cut = data.draw(st.integers(1, len(stream)))
            splitter.feed(memoryview(stream)[:cut], frames)
            stream = stream[cut:]
            assert len(frames) <= NEWCOMERS_FRAMES
            assert sum(map(len, frames)) <= most
            assert splitter.held_bytes <= most
            frames.clear()  # as after each turn
    except ProtocolError:
        assert not frames
    assert max(sizes, default=0) <= most


def test_a_connection_that_is_identified_has_the_usual_frame_limit() -> None:
    splitter, frames = UnauthenticatedSplitter(50), list[memoryview]()
    with pytest.raises(ProtocolError, match="more at a time than a login needs"):
        splitter.feed(memoryview(framed(*[b""] * 17)), frames)
    splitter = UnauthenticatedSplitter(50)
    splitter.set_max_frame_bytes(10 * NEWCOMERS_PIECE_BYTES)
    sent = [bytes(size) for size in (0, 51, 5 * NEWCOMERS_PIECE_BYTES, *[1] * 100)]
    splitter.feed(memoryview(framed(*sent)), frames)
    assert frames == sent


def test_a_large_unfinished_frame_holds_no_more_memory_than_has_arrived() -> None:
    splitter = FrameSplitter(100_000_000)
    frames: list[memoryview] = []
    splitter.feed(memoryview(struct.pack(">i", 50_000_000)), frames)
    piece, arrived = bytes(1_000_000), 0
    for _ in range(20):
        with splitter.free_space() or memoryview(b"") as space:
            count = min(len(space), len(piece))
            space[:count] = piece[:count]
        splitter.advance(count, frames)
        arrived += count
        assert splitter.held_bytes <= arrived + DIRECT_BYTES
    assert arrived > 10_000_000


def test_a_large_frame_that_grows_many_times_keeps_its_bytes() -> None:
    body = random.Random(1).randbytes(9_000_000)
    splitter = FrameSplitter(len(body))
    frames: list[memoryview] = []
    data = memoryview(framed(body))
    for start in range(0, len(data), 300_000):
        splitter.feed(data[start : start + 300_000], frames)
    assert len(frames) == 1
    assert frames[0] == body
    assert not frames[0].readonly
