"""Frames on their way out of one connection.

Gathers bytes into one system call, sends files by `sendfile`, and remembers where the socket stopped taking them.
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
"""Each as its pieces."""
PREFIX = struct.Struct(">i")
MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
GATHER_PARTS = 64
COPY_BYTES = 256 * 1024
SMALL_BYTES = 16 * 1024
"""A piece of a file up to this size is read and goes with the bytes around it: one packet and one wake-up of the client, where
`sendfile` would make three of them."""
NOT_FOR_SENDFILE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSOCK, errno.EOPNOTSUPP, errno.EOVERFLOW}


class SendQueue:
    """First in, first out; None marks the end of a frame."""

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
        pieces = [flat(part) for part in parts if len(part)]
        size = size_of(pieces)
        self._parts.append(PREFIX.pack(size))
        self._parts.extend(pieces)
        self._parts.append(None)
        self.queued_bytes += size + 4

    def send_alone(self, sock: socket.socket, frames: Frames) -> int:
        """Send small frames that nothing waits before, in one piece; how many were completed, -1 where they are not small.

        What most answers are: joining a few bytes costs less than a queue of them. What the socket does not take is queued.
        """
        assert not self
        size = 0
        for parts in frames:
            for part in parts:
                size += len(part)
        if size > SMALL_BYTES:
            return -1
        whole = [framed(parts) for parts in frames]
        data = whole[0] if len(whole) == 1 else b"".join(whole)
        try:
            sent = sock.send(data)
        except BlockingIOError:
            sent = 0
        return len(whole) if sent == len(data) else self._queue_rest(whole, sent)

    def _queue_rest(self, frames: Sequence[bytes], sent: int) -> int:
        """Queue what the socket did not take; how many frames it took."""
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
        """Let go of everything, files included."""
        self._parts.clear()
        self.queued_bytes = 0

    def write_to(self, sock: socket.socket, budget: int) -> int:
        """Send until the socket is full or `budget` bytes are gone; return how many frames were completed."""
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
        """Send the bytes up to the next big piece of a file, of as many frames as there are, in one call."""
        buffers: list[bytes | bytearray | memoryview] = []
        more = 0
        for index, part in enumerate(self._parts):
            if is_big(part) or len(buffers) == GATHER_PARTS:
                more = MSG_MORE
                break
            if isinstance(part, FileSlice):
                part = self._parts[index] = whole_piece(part)
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
        sent = self._by_sendfile(sock, part) if self._sendfile else by_copy(sock, part)
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
            return by_copy(sock, part)
        return sent or file_ended(part)


def framed(parts: Sequence[Part]) -> bytes:
    """A frame with its length, in one piece."""
    body = b"".join([whole_piece(part) if isinstance(part, FileSlice) else part for part in parts if len(part)])
    return PREFIX.pack(len(body)) + body


def is_big(part: Part | None) -> TypeGuard[FileSlice]:
    """Whether it is a piece of a file that goes by itself."""
    return isinstance(part, FileSlice) and part.size > SMALL_BYTES


def by_copy(sock: socket.socket, part: FileSlice) -> int:
    """What `sendfile` does, through our own memory."""
    return sock.send(piece_of_file(part, COPY_BYTES))


def piece_of_file(part: FileSlice, size: int) -> bytes:
    """The first bytes of it, at most `size`."""
    if part.written:
        return part.written[:size]
    return os.pread(part.file.fileno(), min(part.size, size), part.position) or file_ended(part)


def whole_piece(part: FileSlice) -> bytes:
    """Its bytes; OSError where the file has fewer by now."""
    data = piece_of_file(part, part.size)
    return data if len(data) == part.size else file_ended(part)


def file_ended(part: FileSlice) -> NoReturn:
    raise OSError(errno.EIO, f"a file ended before the {part.size} bytes at {part.position} that were to be sent")


def flat(part: Part) -> Part:
    """A part whose `len` is its bytes, whatever the items of a memoryview are."""
    return part.cast("B") if isinstance(part, memoryview) and part.itemsize != 1 else part
