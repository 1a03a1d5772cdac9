"""Length-prefixed frames cut from a stream of bytes.

Pure: bytes in, whole frames out. Memory grows with what has arrived, never with what a peer announces, and the memory
of a frame that was handed out is not used again while anybody has a view of it.
"""

from __future__ import annotations

import mmap
import struct

from ottla.errors import ProtocolError
from ottla.network.frame_buffers import LEAST_BYTES, FrameBuffers, untouched

PREFIX = struct.Struct(">i")
DIRECT_BYTES = 64 * 1024
"""A frame that misses at least this much is received straight into its own memory."""
GROWTH = 4
"""A frame's memory is at most so many times what has arrived of it: a larger factor needs fewer copies, and lets a peer
that announces much and sends little reserve more."""
NEWCOMERS_FRAMES = 16
"""What a peer that nobody knows may have sent before the first of it is answered."""
NEWCOMERS_PIECE_BYTES = 1024
"""So much is cut before it is counted."""

HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ", b"HTTP")
TLS = (b"\x14\x03", b"\x15\x03", b"\x16\x03", b"\x17\x03")


class FrameSplitter:
    """The receiving side of one connection's framing."""

    __slots__ = ("_buffers", "_filled", "_frame", "_length", "_max_frame_bytes", "_prefix")

    def __init__(self, max_frame_bytes: int, buffers: FrameBuffers | None = None) -> None:
        """`buffers` are shared by the connections of one thread."""
        self._max_frame_bytes = max_frame_bytes
        self._buffers = buffers or FrameBuffers()
        self._prefix = b""
        self._frame: bytearray | mmap.mmap | None = None
        self._length = 0
        self._filled = 0

    def allow(self, max_frame_bytes: int) -> None:
        """Take frames of another size from the next on."""
        self._max_frame_bytes = max_frame_bytes

    def feed(self, data: memoryview, frames: list[memoryview]) -> None:
        """Append the frames that `data` completes to `frames`; ProtocolError at a length that cannot be one."""
        position = 0 if self._frame is None and not self._prefix else self._finish(data, frames)
        end = len(data)
        while end - position >= 4:
            start = position + 4
            length: int = PREFIX.unpack_from(data, position)[0]
            if length < 0 or length > self._max_frame_bytes:
                raise ProtocolError(self._complaint(bytes(data[position:start]), length))
            position = start + length
            if position > end:
                self._begin(length, data[start:])
                return
            frames.append(self._copied(data[start:position]))
        if position < end:
            self._prefix = bytes(data[position:])

    def space(self) -> memoryview | None:
        """Where the bytes of a big unfinished frame belong (then `advance`), or None: anywhere (then `feed`).

        The view must be released before the next call.
        """
        frame = self._frame
        if frame is None or self._length - self._filled < DIRECT_BYTES:
            return None
        if self._filled == len(frame):
            frame = self._grow(frame, self._filled)
        return memoryview(frame)[self._filled : self._length]

    def advance(self, count: int, frames: list[memoryview]) -> None:
        """Say that `count` bytes were received into `space()`."""
        assert self._frame is not None
        self._filled += count
        assert self._filled <= len(self._frame)
        self._hand_out_if_whole(frames)

    @property
    def held_bytes(self) -> int:
        """Memory of the unfinished frame: of a large one, what has arrived; the rest was not touched yet."""
        frame = self._frame
        if frame is None:
            return 0
        return self._filled if isinstance(frame, mmap.mmap) else len(frame)

    @property
    def missing_bytes(self) -> int:
        """What the unfinished frame still needs."""
        return 0 if self._frame is None else self._length - self._filled

    def unfinished(self) -> str:
        """What an end of the stream would cut off; empty between two frames."""
        if self._frame is not None:
            return f"{self._filled} of {self._length} bytes of a frame had arrived"
        return "a part of a frame's length had arrived" if self._prefix else ""

    def _finish(self, data: memoryview, frames: list[memoryview]) -> int:
        """Complete what earlier bytes began; return how much of `data` that took."""
        position = 0
        if self._prefix:
            position = min(4 - len(self._prefix), len(data))
            self._prefix += data[:position]
            if len(self._prefix) < 4:
                return position
            length = PREFIX.unpack(self._prefix)[0]
            if length < 0 or length > self._max_frame_bytes:
                raise ProtocolError(self._complaint(self._prefix, length))
            self._prefix = b""
            self._begin(length, data[:0])
        frame = self._frame
        if frame is None:
            return position
        piece = data[position : position + self._length - self._filled]
        self._write(frame, piece)
        self._hand_out_if_whole(frames)
        return position + len(piece)

    def _begin(self, length: int, piece: memoryview) -> None:
        self._length = length
        self._filled = 0
        self._frame = self._buffers.try_allocate(length) or bytearray()
        self._write(self._frame, piece)

    def _copied(self, piece: memoryview) -> memoryview:
        if len(piece) < LEAST_BYTES:
            return memoryview(bytearray(piece))  # as most are, which nobody keeps
        buffer = self._buffers.try_allocate(len(piece))
        if buffer is None:
            buffer = bytearray(piece)
        else:
            buffer[: len(piece)] = piece
        return self._handed_out(buffer, len(piece))

    def _handed_out(self, buffer: bytearray | mmap.mmap, length: int) -> memoryview:
        frame = memoryview(buffer)[:length]
        if isinstance(buffer, bytearray):
            self._buffers.keep(buffer)
        return frame

    def _write(self, frame: bytearray | mmap.mmap, piece: memoryview) -> None:
        end = self._filled + len(piece)
        if end > len(frame):
            frame = self._grow(frame, end)
        frame[self._filled : end] = piece
        self._filled = end

    def _grow(self, frame: bytearray | mmap.mmap, arrived: int) -> bytearray | mmap.mmap:
        """Give the frame more memory, in proportion to what has arrived.

        Frames that are too large to be reused are mapped: their pages are taken from the system as bytes arrive, moved
        instead of copied when the frame grows, and given back at once. Python's allocator would keep them, in holes.
        """
        size = min(rounded(self._length), max(GROWTH * arrived, DIRECT_BYTES))
        if isinstance(frame, mmap.mmap):
            try:
                frame.resize(size)
            except SystemError:  # a system that cannot move mapped pages
                pass
            else:
                return frame
        # A new one: extending would take zeros from memory that the system has to hand out, and clear, first.
        grown = bytearray(size) if self._length <= self._buffers.most_bytes else untouched(size)
        grown[: self._filled] = memoryview(frame)[: self._filled]
        self._frame = grown
        return grown

    def _hand_out_if_whole(self, frames: list[memoryview]) -> None:
        if self._filled == self._length and self._frame is not None:
            frames.append(self._handed_out(self._frame, self._length))
            self._frame = None

    def _complaint(self, prefix: bytes, length: int) -> str:
        if prefix in HTTP:
            return "this looks like HTTP, not Kafka's protocol"
        if prefix[:2] in TLS:
            return "this looks like TLS, but the connection is plaintext: set security.protocol alike on both sides"
        if length < 0:
            return f"a frame of {length} bytes was announced: this is not Kafka's protocol"
        return f"a frame of {length} bytes was announced, more than the {self._max_frame_bytes} allowed"


class NewcomerSplitter(FrameSplitter):
    """That of a peer of whom nobody knows who it is: until it may send what others do, little is taken in at a time.

    Frames of no length cost a peer four bytes and us a hundred times that; they are counted before there are many.
    """

    __slots__ = ("_known",)

    def __init__(self, max_frame_bytes: int, buffers: FrameBuffers | None = None) -> None:
        super().__init__(max_frame_bytes, buffers)
        self._known = False

    def allow(self, max_frame_bytes: int) -> None:
        self._known = True
        super().allow(max_frame_bytes)

    def feed(self, data: memoryview, frames: list[memoryview]) -> None:
        """As for others; ProtocolError where it is more at a time than a login ever needs."""
        if self._known:
            super().feed(data, frames)
            return
        for start in range(0, len(data), NEWCOMERS_PIECE_BYTES):
            super().feed(data[start : start + NEWCOMERS_PIECE_BYTES], frames)
            if len(frames) > NEWCOMERS_FRAMES or sum(map(len, frames)) > self._max_frame_bytes:
                frames.clear()
                raise ProtocolError("it sends more at a time than a login needs, and has not logged in")


def rounded(length: int) -> int:
    """Room that the next frame, which may be a little longer, fits into as well."""
    return length if length < DIRECT_BYTES else -(-length // DIRECT_BYTES) * DIRECT_BYTES
