"""TLS on one connection: a channel that passes its bytes through OpenSSL.

 OpenSSL reads and writes memory buffers and never accesses the socket. Therefore no call blocks, and the plaintext
channel needs no change; the selector decides when to read and write, as for plaintext. The handshake (RFC 8446, section
2) needs several iterations: while `connecting` is true, `finish_connecting` feeds received bytes to OpenSSL and sends
its output. Frames that are queued meanwhile are encrypted when it is complete. A failed handshake sends an alert, so
that the peer can report the reason too.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Hashable
from typing import Any, cast

from ottla.errors import ConfigError, ProtocolError
from ottla.model import FileSlice, Part
from ottla.network.channel import READ_BYTES_PER_TURN, Channel
from ottla.network.frame_buffers import FrameBuffers
from ottla.network.frames import UnauthenticatedSplitter
from ottla.network.poller import READ, WRITE
from ottla.network.refusal import LEFT_BEFORE_HANDSHAKE, PeerRefusal
from ottla.network.send_queue import Frames, SendQueue, piece_of_file
from ottla.network.tls_context import TlsContexts
from ottla.network.tls_reasons import CLIENT_HUNG_UP, HUNG_UP, client_reason, handshake_reason, stream_reason

SEALED_BYTES = 64 * 1024
"""The number of bytes encrypted and sent at a time."""
HANDSHAKE_BYTES = 64 * 1024
"""The limit for the bytes of a handshake, including certificate chains; OpenSSL has a larger one."""
MOST_UNASKED_BYTES = 64 * 1024
"""The limit for unsent protocol messages that a peer may cause without reading them."""


class TlsSendQueue(SendQueue):
    """The queue of frames, encrypted in pieces."""

    __slots__ = ("_frames", "_plain", "_rest", "_sealed", "out", "tls")

    def __init__(self) -> None:
        super().__init__()
        self.tls: ssl.SSLObject | None = None
        """None until the handshake is complete."""
        self.out = ssl.MemoryBIO()
        self._sealed = memoryview(b"")
        """Encrypted bytes that the socket did not accept yet;

        `_plain` bytes of frames and `_frames` ends of frames are in them.
        """
        self._plain = 0
        self._frames = 0
        self._rest = b""
        """Unsent TLS protocol messages, such as key updates; they are sent before the next data."""

    def __bool__(self) -> bool:
        return bool(self._parts) or bool(self._sealed)

    def take_unsent(self, queue: SendQueue) -> None:
        """Take the unsent frames of another queue."""
        self._parts, self.queued_bytes = queue._parts, queue.queued_bytes

    def send_alone(self, sock: socket.socket, frames: Frames) -> int:
        """Return -1: all frames must be encrypted."""
        return -1

    def has_pending_bytes(self) -> bool:
        """Return true if encrypted bytes wait for the socket."""
        return bool(self._sealed) or bool(self.out.pending) or bool(self._rest)

    def send_pending_bytes(self, sock: socket.socket) -> None:
        """Send pending TLS protocol messages if the socket accepts them and no data is being sent."""
        if not self._sealed and self.has_pending_bytes():
            data = self._rest + self.out.read()
            try:
                self._rest = data[sock.send(data) :]
            except BlockingIOError:
                self._rest = data
            if len(self._rest) > MOST_UNASKED_BYTES:
                raise ProtocolError("the peer causes TLS protocol messages without reading them")

    def clear(self) -> None:
        super().clear()
        self._sealed, self._rest = memoryview(b""), b""

    def write_to(self, sock: socket.socket, budget: int) -> int:
        """Send until the socket is full or about `budget` bytes were sent; return the number of completed frames."""
        completed = 0
        while budget > 0 and self._fill():
            try:
                sent = sock.send(self._sealed)
            except BlockingIOError:
                break
            budget -= sent
            self._sealed = self._sealed[sent:]
            if not self._sealed:
                completed += self._frames
                self.queued_bytes -= self._plain
                self._frames = self._plain = 0
        return completed

    def _fill(self) -> bool:
        """Encrypt the next piece if none is pending; return false if there is nothing to send."""
        if not self._sealed:
            if self.tls is not None and self._parts:
                self.tls.write(self._gather_piece())
            self._sealed, self._rest = memoryview(self._rest + self.out.read()), b""
        return bool(self._sealed)

    def _gather_piece(self) -> bytes:
        """Return the next piece of queued frames."""
        pieces: list[bytes | bytearray | memoryview] = []
        while self._parts and self._plain < SEALED_BYTES:
            part = self._parts.popleft()
            if part is None:
                self._frames += 1
                continue
            piece, rest = split_part(part, SEALED_BYTES - self._plain)
            pieces.append(piece)
            self._plain += len(piece)
            if rest is not None:
                self._parts.appendleft(rest)
        if self._parts and self._parts[0] is None:
            self._parts.popleft()
            self._frames += 1
        return b"".join(pieces)


def split_part(part: Part, size: int) -> tuple[bytes | bytearray | memoryview, Part | None]:
    """Split a part after `size` bytes; return its start and the rest."""
    if isinstance(part, FileSlice):
        data = piece_of_file(part, size)
        left = part.size - len(data)
        return data, FileSlice(part.file, part.position + len(data), left) if left else None
    if len(part) <= size:
        return part, None
    view = memoryview(part)
    return view[:size], view[size:]


class TlsChannel(Channel):
    """A connection that is ready when the TLS handshake is complete."""

    __slots__ = ("_contexts", "_handshake_bytes", "_incoming", "_queue", "_tls")

    closed_in_handshake: str = HUNG_UP
    """The reason if the peer closes the connection in the handshake."""

    def __init__(
        self,
        contexts: TlsContexts,
        channel_id: Hashable,
        max_frame_bytes: int,
        peer: tuple[str, int],
        buffers: FrameBuffers | None = None,
    ) -> None:
        super().__init__(channel_id, max_frame_bytes, peer, buffers)
        self._contexts = contexts
        self._reset_tls()

    def _reset_tls(self) -> None:
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._handshake_bytes = 0
        self.outgoing = self._queue = convert_queue(self.outgoing)

    def start_connecting(self) -> str:
        """Connect to the next address, with a new handshake."""
        self._reset_tls()
        return super().start_connecting()

    def finish_connecting(self) -> str | None:
        """Continue connecting and then the handshake; return None while it is not finished."""
        if self._tls is None:
            deadline = self.deadline
            reason = super().finish_connecting()
            if reason:
                return reason
            self.connecting, self.deadline = True, deadline
            try:
                self._tls = self._contexts.current_context().wrap_bio(
                    self._incoming, self._queue.out, server_hostname=self._contexts.name_to_check(self.peer[0])
                )
            except (ConfigError, ValueError, OSError) as error:
                return self._handshake_refusal(PeerRefusal(f"TLS cannot be started: {error}"))
        return self._continue_handshake(self._tls)

    def wanted_events(self) -> int:
        """Return the events to wait for; a handshake may need both directions."""
        if self.connecting and self._tls is not None:
            return READ | (WRITE if self._queue.has_pending_bytes() else 0)
        return super().wanted_events()

    def read(self, scratch: memoryview, frames: list[memoryview], budget: int = READ_BYTES_PER_TURN) -> bool:
        """Receive up to `budget` bytes; return false at the end of the stream, with or without close_notify."""
        sock = self.open_socket
        if self._incoming.pending and not self._decrypt(
            scratch, frames
        ):  # these bytes arrived with the end of the handshake
            return False
        while budget > 0:
            try:
                count = sock.recv_into(scratch)
            except BlockingIOError:
                return True
            if not count:
                return False
            self._incoming.write(scratch[:count])
            if not self._decrypt(scratch, frames):
                return False
            if count < len(scratch):
                break
            budget -= count
        self._queue.send_pending_bytes(sock)
        return True

    def unread_bytes(self) -> int:
        """Return the number of unread bytes; an upper bound, since encrypted data is longer than its content."""
        held = self._incoming.pending + (self._tls.pending() if self._tls is not None else 0)
        return super().unread_bytes() + held

    def close(self) -> None:
        """Send close_notify if the socket accepts it, and close."""
        if (
            self._tls is not None
            and not self.connecting
            and self.socket is not None
            and not self._queue.has_pending_bytes()
        ):
            try:
                self._tls.unwrap()
            except (OSError, ValueError):
                pass
            try:
                self.socket.send(self._queue.out.read())
            except OSError:
                pass
        self._tls = None
        super().close()

    def _continue_handshake(self, tls: ssl.SSLObject) -> str | None:
        sock = self.open_socket
        try:
            while True:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    self._queue.write_to(sock, HANDSHAKE_BYTES)
                    if self._handshake_bytes > HANDSHAKE_BYTES:
                        return self._handshake_refusal(
                            f"more than {HANDSHAKE_BYTES} bytes were received and the handshake is not complete"
                        )
                    data = sock.recv(HANDSHAKE_BYTES)
                    if not data:
                        return self._explain_close()
                    self._handshake_bytes += len(data)
                    self._incoming.write(data)
                else:
                    break
        except BlockingIOError:
            return None
        except ssl.SSLError as error:
            self._send_alert(sock)
            return self._handshake_refusal(self._explain_handshake_error(error))
        except (BrokenPipeError, ConnectionResetError):
            return self._explain_close()
        self.connecting, self.deadline = False, None
        self._queue.tls = tls
        return ""

    def _explain_close(self) -> str:
        """Return the reason when the peer closes the connection before the end of the handshake."""
        return self.closed_in_handshake

    def _explain_handshake_error(self, error: ssl.SSLError) -> str:
        return handshake_reason(error, self.peer[0], self._contexts.has_certificate)

    def _explain_stream_error(self, error: ssl.SSLError) -> str:
        return stream_reason(error, self._contexts.has_certificate)

    def _handshake_refusal(self, reason: str) -> str:
        self.addresses = []  # an invalid name or certificate is the same at every address
        return reason

    def _send_alert(self, sock: socket.socket) -> None:
        """Send the alert to the peer, if the socket accepts it."""
        try:
            self._queue.write_to(sock, HANDSHAKE_BYTES)
        except OSError:
            pass

    def _decrypt(self, scratch: memoryview, frames: list[memoryview]) -> bool:
        """Split all received data into frames; return false after the peer's close_notify."""
        tls, splitter = self._tls, self.splitter
        assert tls is not None
        while self._incoming.pending or tls.pending():
            own = splitter.free_space()
            try:
                count, goes_on = decrypt_into(tls, self._incoming, scratch if own is None else own)
            except ssl.SSLError as error:
                raise ProtocolError(self._explain_stream_error(error)) from None
            finally:
                if own is not None:
                    own.release()
            if own is None:
                splitter.feed(scratch[:count], frames)
            else:
                splitter.advance(count, frames)
            if not goes_on:
                return False
            if not count:
                break
        return True


def decrypt_into(tls: ssl.SSLObject, incoming: ssl.MemoryBIO, target: memoryview) -> tuple[int, bool]:
    """Decrypt received data into `target`; return the number of bytes, and false after close_notify.

     Several TLS records are read per call: librdkafka sends each record of a batch as one TLS record. The loop stops
    before a read that would only raise SSLWantReadError, since an exception costs as much as a record.
    """
    # typeshed does not know this signature of SSLObject.read.
    read: Callable[[int, memoryview], int] = cast(Any, tls.read)
    size, filled = len(target), 0
    try:
        while filled < size:
            count = read(size - filled, target[filled:])
            if not count:
                return filled, False
            filled += count
            if not incoming.pending and not tls.pending():
                break
    except ssl.SSLWantReadError:
        pass
    return filled, True


def convert_queue(queue: SendQueue) -> TlsSendQueue:
    """Return a TLS queue with the frames that were queued already."""
    fresh = TlsSendQueue()
    fresh.take_unsent(queue)
    return fresh


class TlsServerChannel(TlsChannel):
    """An accepted connection: the peer starts the handshake."""

    __slots__ = ()

    closed_in_handshake = CLIENT_HUNG_UP

    def _explain_close(self) -> str:
        return self.closed_in_handshake if self._handshake_bytes else LEFT_BEFORE_HANDSHAKE

    def attach(self, sock: socket.socket) -> None:
        """Use an accepted socket; the channel is connected after the handshake."""
        super().attach(sock)
        self.connecting = True
        self._tls = self._contexts.current_context().wrap_bio(self._incoming, self._queue.out, server_side=True)

    def finish_connecting(self) -> str | None:
        """Continue the handshake; return None while it is not finished."""
        assert self._tls is not None
        reason = self._continue_handshake(self._tls)
        self.newcomer = self.connecting or isinstance(self.splitter, UnauthenticatedSplitter)
        return reason

    @property
    def peer_certificate(self) -> Any:
        """The client's certificate as in Python's ssl module; None if it sent none."""
        return None if self._tls is None or self.connecting else self._tls.getpeercert() or None

    def _explain_handshake_error(self, error: ssl.SSLError) -> str:
        return client_reason(error)

    def _explain_stream_error(self, error: ssl.SSLError) -> str:
        return client_reason(error)
