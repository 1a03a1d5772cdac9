"""Split a stream of bytes into length-prefixed frames.

Pure. The memory of a frame grows with the received bytes, not with the announced length. The memory of a returned
frame is not reused while a view of it exists.
"""

from __future__ import annotations

import mmap
import struct

from ottla.errors import ProtocolError
from ottla.network.frame_buffers import LEAST_BYTES, FrameBuffers, allocate_untouched

PREFIX = struct.Struct(">i")
DIRECT_BYTES = 64 * 1024
"""A frame that lacks at least this many bytes is received directly into its own memory."""
GROWTH = 4
"""The maximum ratio of a frame's memory to its received bytes. A larger factor needs fewer copies, but lets a peer reserve
more memory by announcing a large frame.
"""
NEWCOMERS_FRAMES = 16
"""The maximum number of pending frames of an unauthenticated peer."""
NEWCOMERS_PIECE_BYTES = 1024
"""The number of bytes that are split before they are counted."""

HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ", b"HTTP")
TLS = (b"\x14\x03", b"\x15\x03", b"\x16\x03", b"\x17\x03")


class FrameSplitter:
    """The receiving side of a connection's framing."""

    __slots__ = ("_buffers", "_filled", "_frame", "_length", "_max_frame_bytes", "_prefix")

    def __init__(self, max_frame_bytes: int, buffers: FrameBuffers | None = None) -> None:
        """Share `buffers` among the connections of one thread."""
        self._max_frame_bytes = max_frame_bytes
        self._buffers = buffers or FrameBuffers()
        self._prefix = b""
        self._frame: bytearray | mmap.mmap | None = None
        self._length = 0
        self._filled = 0

    def set_max_frame_bytes(self, max_frame_bytes: int) -> None:
        """Set the maximum size of the following frames."""
        self._max_frame_bytes = max_frame_bytes

    def feed(self, data: memoryview, frames: list[memoryview]) -> None:
        """Append the frames completed by `data` to `frames`; raise ProtocolError for an impossible length."""
        position = 0 if self._frame is None and not self._prefix else self._finish_frame(data, frames)
        end = len(data)
        while end - position >= 4:
            start = position + 4
            length: int = PREFIX.unpack_from(data, position)[0]
            if length < 0 or length > self._max_frame_bytes:
                raise ProtocolError(self._frame_error(bytes(data[position:start]), length))
            position = start + length
            if position > end:
                self._begin_frame(length, data[start:])
                return
            frames.append(self._copy_piece(data[start:position]))
        if position < end:
            self._prefix = bytes(data[position:])

    def free_space(self) -> memoryview | None:
        """Return the memory for the next bytes of a large unfinished frame (then call `advance`), or None (then call `feed`).

        The view must be released before the next call.
        """
        frame = self._frame
        if frame is None or self._length - self._filled < DIRECT_BYTES:
            return None
        if self._filled == len(frame):
            frame = self._grow_frame(frame, self._filled)
        return memoryview(frame)[self._filled : self._length]

    def advance(self, count: int, frames: list[memoryview]) -> None:
        """Account for `count` bytes received into `free_space()`."""
        assert self._frame is not None
        self._filled += count
        assert self._filled <= len(self._frame)
        self._hand_out_if_whole(frames)

    @property
    def held_bytes(self) -> int:
        """The memory of the unfinished frame.

        A large frame counts only with its received bytes, since the rest is not allocated yet.
        """
        frame = self._frame
        if frame is None:
            return 0
        return self._filled if isinstance(frame, mmap.mmap) else len(frame)

    @property
    def missing_bytes(self) -> int:
        """The number of bytes that the unfinished frame lacks."""
        return 0 if self._frame is None else self._length - self._filled

    def describe_unfinished(self) -> str:
        """Describe the incomplete frame that an end of the stream would lose; empty between two frames."""
        if self._frame is not None:
            return f"{self._filled} of {self._length} bytes of a frame had arrived"
        return "a part of a frame's length had arrived" if self._prefix else ""

    def _finish_frame(self, data: memoryview, frames: list[memoryview]) -> int:
        """Complete the frame or prefix of earlier bytes; return the number of bytes used from `data`."""
        position = 0
        if self._prefix:
            position = min(4 - len(self._prefix), len(data))
            self._prefix += data[:position]
            if len(self._prefix) < 4:
                return position
            length = PREFIX.unpack(self._prefix)[0]
            if length < 0 or length > self._max_frame_bytes:
                raise ProtocolError(self._frame_error(self._prefix, length))
            self._prefix = b""
            self._begin_frame(length, data[:0])
        frame = self._frame
        if frame is None:
            return position
        piece = data[position : position + self._length - self._filled]
        self._write_piece(frame, piece)
        self._hand_out_if_whole(frames)
        return position + len(piece)

    def _begin_frame(self, length: int, piece: memoryview) -> None:
        self._length = length
        self._filled = 0
        self._frame = self._buffers.try_allocate(length) or bytearray()
        self._write_piece(self._frame, piece)

    def _copy_piece(self, piece: memoryview) -> memoryview:
        if len(piece) < LEAST_BYTES:
            return memoryview(bytearray(piece))  # most frames are small and need no reuse
        buffer = self._buffers.try_allocate(len(piece))
        if buffer is None:
            buffer = bytearray(piece)
        else:
            buffer[: len(piece)] = piece
        return self._hand_out(buffer, len(piece))

    def _hand_out(self, buffer: bytearray | mmap.mmap, length: int) -> memoryview:
        frame = memoryview(buffer)[:length]
        if isinstance(buffer, bytearray):
            self._buffers.keep_buffer(buffer)
        return frame

    def _write_piece(self, frame: bytearray | mmap.mmap, piece: memoryview) -> None:
        end = self._filled + len(piece)
        if end > len(frame):
            frame = self._grow_frame(frame, end)
        frame[self._filled : end] = piece
        self._filled = end

    def _grow_frame(self, frame: bytearray | mmap.mmap, arrived: int) -> bytearray | mmap.mmap:
        """Give the frame more memory, in proportion to the received bytes.

         Frames that are too large for reuse are mapped: the system allocates their pages as bytes arrive, moves them
        instead of copying when the frame grows, and frees them at once. Python's allocator would keep them as
        fragments.
        """
        size = min(round_up(self._length), max(GROWTH * arrived, DIRECT_BYTES))
        if isinstance(frame, mmap.mmap):
            try:
                frame.resize(size)
            except SystemError:  # the system cannot move mapped pages
                pass
            else:
                return frame
        # A new buffer, because extending one would fill it with zeros first.
        grown = bytearray(size) if self._length <= self._buffers.most_bytes else allocate_untouched(size)
        grown[: self._filled] = memoryview(frame)[: self._filled]
        self._frame = grown
        return grown

    def _hand_out_if_whole(self, frames: list[memoryview]) -> None:
        if self._filled == self._length and self._frame is not None:
            frames.append(self._hand_out(self._frame, self._length))
            self._frame = None

    def _frame_error(self, prefix: bytes, length: int) -> str:
        if prefix in HTTP:
            return "this looks like HTTP, not Kafka's protocol"
        if prefix[:2] in TLS:
            return "this looks like TLS, but the connection is plaintext: set security.protocol alike on both sides"
        if length < 0:
            return f"a frame of {length} bytes was announced: this is not Kafka's protocol"
        return f"a frame of {length} bytes was announced, more than the {self._max_frame_bytes} allowed"


class UnauthenticatedSplitter(FrameSplitter):
    """The splitter for a peer that has not logged in: it limits pending frames and bytes.

    An empty frame costs a peer four bytes and the broker a hundred times that, so frames are counted early.
    """

    __slots__ = ("_known",)

    def __init__(self, max_frame_bytes: int, buffers: FrameBuffers | None = None) -> None:
        super().__init__(max_frame_bytes, buffers)
        self._known = False

    def set_max_frame_bytes(self, max_frame_bytes: int) -> None:
        self._known = True
        super().set_max_frame_bytes(max_frame_bytes)

    def feed(self, data: memoryview, frames: list[memoryview]) -> None:
        """Split frames as the base class; raise ProtocolError if the peer sends more than a login needs."""
        if self._known:
            super().feed(data, frames)
            return
        for start in range(0, len(data), NEWCOMERS_PIECE_BYTES):
            super().feed(data[start : start + NEWCOMERS_PIECE_BYTES], frames)
            if len(frames) > NEWCOMERS_FRAMES or sum(map(len, frames)) > self._max_frame_bytes:
                frames.clear()
                raise ProtocolError("the peer sends more at a time than a login needs, and has not logged in")


def round_up(length: int) -> int:
    """Round a length up, so that a slightly longer frame fits too."""
    return length if length < DIRECT_BYTES else -(-length // DIRECT_BYTES) * DIRECT_BYTES
