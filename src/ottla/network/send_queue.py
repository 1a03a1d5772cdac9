"""The queue of frames to send on one connection.

Bytes are gathered into one system call, files are sent by `sendfile`, and partial writes are continued.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import NoReturn, TypeGuard

from ottla.model import FileSlice, Part, size_of

Frames = Sequence[Sequence[Part]]
"""Each frame as a sequence of parts."""
PREFIX = struct.Struct(">i")
MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
GATHER_PARTS = 64
COPY_BYTES = 256 * 1024
SMALL_BYTES = 16 * 1024
"""A part of a file up to this size is read and sent with the adjacent bytes: one packet and one wake-up of the client,
instead of three with `sendfile`.
"""
NOT_FOR_SENDFILE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSOCK, errno.EOPNOTSUPP, errno.EOVERFLOW}


class SendQueue:
    """A queue of parts; None marks the end of a frame."""

    __slots__ = ("_completed", "_parts", "_sendfile", "queued_bytes")

    def __init__(self) -> None:
        self._parts: deque[Part | None] = deque()
        self._completed = 0
        self._sendfile = hasattr(os, "sendfile")
        self.queued_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def push(self, parts: Sequence[Part]) -> None:
        """Queue one frame; its length prefix is added here."""
        pieces = [flatten_part(part) for part in parts if len(part)]
        size = size_of(pieces)
        self._parts.append(PREFIX.pack(size))
        self._parts.extend(pieces)
        self._parts.append(None)
        self.queued_bytes += size + 4

    def send_alone(self, sock: socket.socket, frames: Frames) -> int:
        """Send small frames while the queue is empty; return the number of completed ones, or -1 if they are not small.

         Most responses are small: joining a few bytes costs less than queueing them. Bytes that the socket does not
        accept are queued.
        """
        assert not self
        size = 0
        for parts in frames:
            for part in parts:
                size += len(part)
        if size > SMALL_BYTES:
            return -1
        whole = [frame_parts(parts) for parts in frames]
        data = whole[0] if len(whole) == 1 else b"".join(whole)
        try:
            sent = sock.send(data)
        except BlockingIOError:
            sent = 0
        return len(whole) if sent == len(data) else self._queue_rest(whole, sent)

    def _queue_rest(self, frames: Sequence[bytes], sent: int) -> int:
        """Queue the bytes that the socket did not accept; return the number of completed frames."""
        completed = 0
        for frame in frames:
            if sent >= len(frame):
                completed += 1
                sent -= len(frame)
            else:
                self._parts.extend((memoryview(frame)[sent:], None))
                self.queued_bytes += len(frame) - sent
                sent = 0
        return completed

    def clear(self) -> None:
        """Drop all frames and references to files."""
        self._parts.clear()
        self.queued_bytes = 0

    def write_to(self, sock: socket.socket, budget: int) -> int:
        """Send until the socket is full or `budget` bytes were sent; return the number of completed frames."""
        self._completed = 0
        try:
            while self._parts and budget > 0:
                part = self._parts[0]
                if part is None:
                    self._drop_finished()
                    continue
                sent = self._send_file(sock, part) if is_big(part) else self._send_bytes(sock)
                self.queued_bytes -= sent
                budget -= sent
        except BlockingIOError:
            pass
        self._drop_finished()
        return self._completed

    def _drop_finished(self) -> None:
        while self._parts and self._parts[0] is None:
            self._parts.popleft()
            self._completed += 1

    def _send_bytes(self, sock: socket.socket) -> int:
        """Send the bytes up to the next large file part, of several frames, in one call."""
        buffers: list[bytes | bytearray | memoryview] = []
        more = 0
        for index, part in enumerate(self._parts):
            if is_big(part) or len(buffers) == GATHER_PARTS:
                more = MSG_MORE
                break
            if isinstance(part, FileSlice):
                part = self._parts[index] = read_whole_piece(part)
            if part is not None:
                buffers.append(part)
        sent = sock.sendmsg(buffers, (), more)
        self._advance(sent)
        return sent

    def _advance(self, count: int) -> None:
        while count:
            self._drop_finished()
            part = self._parts[0]
            assert part is not None
            assert not isinstance(part, FileSlice)
            if count < len(part):
                self._parts[0] = memoryview(part)[count:]
                return
            self._parts.popleft()
            count -= len(part)

    def _send_file(self, sock: socket.socket, part: FileSlice) -> int:
        sent = self._by_sendfile(sock, part) if self._sendfile else send_by_copy(sock, part)
        if sent == part.size:
            self._parts.popleft()
        else:
            self._parts[0] = FileSlice(part.file, part.position + sent, part.size - sent)
        return sent

    def _by_sendfile(self, sock: socket.socket, part: FileSlice) -> int:
        try:
            sent = os.sendfile(sock.fileno(), part.file.fileno(), part.position, part.size)
        except OSError as error:
            if error.errno not in NOT_FOR_SENDFILE:
                raise
            self._sendfile = False
            return send_by_copy(sock, part)
        return sent or file_ended_error(part)


def frame_parts(parts: Sequence[Part]) -> bytes:
    """Return a frame with its length prefix as bytes."""
    body = b"".join([read_whole_piece(part) if isinstance(part, FileSlice) else part for part in parts if len(part)])
    return PREFIX.pack(len(body)) + body


def is_big(part: Part | None) -> TypeGuard[FileSlice]:
    """Return true for a file part that is sent by `sendfile`."""
    return isinstance(part, FileSlice) and part.size > SMALL_BYTES


def send_by_copy(sock: socket.socket, part: FileSlice) -> int:
    """Send a file part without `sendfile`, by reading it."""
    return sock.send(piece_of_file(part, COPY_BYTES))


def piece_of_file(part: FileSlice, size: int) -> bytes:
    """Return at most the first `size` bytes of a file part."""
    if part.written:
        return part.written[:size]
    return os.pread(part.file.fileno(), min(part.size, size), part.position) or file_ended_error(part)


def read_whole_piece(part: FileSlice) -> bytes:
    """Return the bytes of a file part; raise OSError if the file is shorter now."""
    data = piece_of_file(part, part.size)
    return data if len(data) == part.size else file_ended_error(part)


def file_ended_error(part: FileSlice) -> NoReturn:
    raise OSError(errno.EIO, f"a file ended before the {part.size} bytes at {part.position} could be sent")


def flatten_part(part: Part) -> Part:
    """Return a part with a `len` in bytes, for any item size of a memoryview."""
    return part.cast("B") if isinstance(part, memoryview) and part.itemsize != 1 else part
