"""TLS on one connection: a channel whose bytes pass through OpenSSL on their way.

OpenSSL has memory on both sides and never sees the socket, so that what the plaintext channel does stays as it is and
nothing blocks. When to do what is the selector's business here too.
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
from ottla.network.frames import NewcomerSplitter
from ottla.network.poller import READ, WRITE
from ottla.network.refusal import Refusal
from ottla.network.send_queue import Frames, SendQueue, piece_of_file
from ottla.network.tls_context import TlsContexts
from ottla.network.tls_reasons import CLIENT_HUNG_UP, HUNG_UP, client_reason, handshake_reason, stream_reason

SEALED_BYTES = 64 * 1024
"""What is encrypted and sent at a time."""
HANDSHAKE_BYTES = 64 * 1024
"""What a handshake may take from its beginning to its end, chains of certificates included; OpenSSL would hold more."""
MOST_UNASKED_BYTES = 64 * 1024
"""What a peer may make OpenSSL answer, of its own accord, while it does not read the answers."""


class TlsSendQueue(SendQueue):
    """Frames on their way out, encrypted a piece at a time."""

    __slots__ = ("_frames", "_plain", "_rest", "_sealed", "out", "tls")

    def __init__(self) -> None:
        super().__init__()
        self.tls: ssl.SSLObject | None = None
        """None until the handshake is over: frames wait for it."""
        self.out = ssl.MemoryBIO()
        self._sealed = memoryview(b"")
        """Encrypted and not yet taken by the socket: so many bytes of frames, and the ends of so many."""
        self._plain = 0
        self._frames = 0
        self._rest = b""
        """What TLS says of its own accord, and the socket has not taken: it goes before what comes next."""

    def __bool__(self) -> bool:
        return bool(self._parts) or bool(self._sealed)

    def take_over(self, queue: SendQueue) -> None:
        """Have the frames that another queue has, which has sent none of them."""
        self._parts, self.queued_bytes = queue._parts, queue.queued_bytes

    def send_alone(self, sock: socket.socket, frames: Frames) -> int:
        """Never: all goes through the cipher."""
        return -1

    def owes(self) -> bool:
        """Whether something that is encrypted already waits for the socket."""
        return bool(self._sealed) or bool(self.out.pending) or bool(self._rest)

    def send_unasked(self, sock: socket.socket) -> None:
        """Send what TLS says of its own accord, if the socket takes it and nothing is on its way."""
        if not self._sealed and self.owes():
            data = self._rest + self.out.read()
            try:
                self._rest = data[sock.send(data) :]
            except BlockingIOError:
                self._rest = data
            if len(self._rest) > MOST_UNASKED_BYTES:
                raise ProtocolError("the peer keeps TLS busy, and does not read its answers")

    def clear(self) -> None:
        super().clear()
        self._sealed, self._rest = memoryview(b""), b""

    def write_to(self, sock: socket.socket, budget: int) -> int:
        """Send until the socket is full or about `budget` bytes are gone; return how many frames were completed."""
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
        """Have something to send; False when there is nothing."""
        if not self._sealed:
            if self.tls is not None and self._parts:
                self.tls.write(self._gathered())
            self._sealed, self._rest = memoryview(self._rest + self.out.read()), b""
        return bool(self._sealed)

    def _gathered(self) -> bytes:
        """The next bytes of frames, one piece of them."""
        pieces: list[bytes | bytearray | memoryview] = []
        while self._parts and self._plain < SEALED_BYTES:
            part = self._parts.popleft()
            if part is None:
                self._frames += 1
                continue
            piece, rest = cut(part, SEALED_BYTES - self._plain)
            pieces.append(piece)
            self._plain += len(piece)
            if rest is not None:
                self._parts.appendleft(rest)
        if self._parts and self._parts[0] is None:
            self._parts.popleft()
            self._frames += 1
        return b"".join(pieces)


def cut(part: Part, size: int) -> tuple[bytes | bytearray | memoryview, Part | None]:
    """The first bytes of a part, and what is left of it."""
    if isinstance(part, FileSlice):
        data = piece_of_file(part, size)
        left = part.size - len(data)
        return data, FileSlice(part.file, part.position + len(data), left) if left else None
    if len(part) <= size:
        return part, None
    view = memoryview(part)
    return view[:size], view[size:]


class TlsChannel(Channel):
    """A connection that is ready when both sides know each other."""

    __slots__ = ("_contexts", "_heard", "_incoming", "_queue", "_tls")

    hung_up: str = HUNG_UP
    """What it means that the peer went amid the handshake."""

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
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._heard = 0
        self.outgoing = self._queue = taken_over(self.outgoing)

    def start_connecting(self) -> str:
        """Begin with the next address; nothing of a handshake with another one stays."""
        self._begin_anew()
        return super().start_connecting()

    def finish_connecting(self) -> str | None:
        """Go on with connecting and then with the handshake; None while that takes more."""
        if self._tls is None:
            deadline = self.deadline
            reason = super().finish_connecting()
            if reason:
                return reason
            self.connecting, self.deadline = True, deadline
            try:
                self._tls = self._contexts.current().wrap_bio(
                    self._incoming, self._queue.out, server_hostname=self._contexts.name_to_check(self.peer[0])
                )
            except (ConfigError, ValueError, OSError) as error:
                return self._refused(Refusal(f"TLS cannot begin: {error}"))
        return self._shake_hands(self._tls)

    def wanted(self) -> int:
        """What to wait for; the handshake goes both ways."""
        if self.connecting and self._tls is not None:
            return READ | (WRITE if self._queue.owes() else 0)
        return super().wanted()

    def read(self, scratch: memoryview, frames: list[memoryview], budget: int = READ_BYTES_PER_TURN) -> bool:
        """Receive this turn's share into `frames`; False at the end of the stream, by TLS's own farewell or without."""
        sock = self.open_socket
        if self._incoming.pending and not self._decrypt(scratch, frames):  # it came with the end of the handshake
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
        self._queue.send_unasked(sock)
        return True

    def unread_bytes(self) -> int:
        """The same, with what was read and not decrypted; what is encrypted is never shorter than its contents."""
        held = self._incoming.pending + (self._tls.pending() if self._tls is not None else 0)
        return super().unread_bytes() + held

    def close(self) -> None:
        """Say farewell, where that can be said at once, and let go."""
        if self._tls is not None and not self.connecting and self.socket is not None and not self._queue.owes():
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

    def _shake_hands(self, tls: ssl.SSLObject) -> str | None:
        sock = self.open_socket
        try:
            while True:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    self._queue.write_to(sock, HANDSHAKE_BYTES)
                    if self._heard > HANDSHAKE_BYTES:
                        return self._refused(f"more than {HANDSHAKE_BYTES} bytes came, and the handshake is not over")
                    data = sock.recv(HANDSHAKE_BYTES)
                    if not data:
                        return self.hung_up
                    self._heard += len(data)
                    self._incoming.write(data)
                else:
                    break
        except BlockingIOError:
            return None
        except ssl.SSLError as error:
            self._tell_why(sock)
            return self._refused(self._explained(error))
        except (BrokenPipeError, ConnectionResetError):
            return self.hung_up
        self.connecting, self.deadline = False, None
        self._queue.tls = tls
        return ""

    def _explained(self, error: ssl.SSLError) -> str:
        return handshake_reason(error, self.peer[0], self._contexts.shows_certificate)

    def _explained_amid(self, error: ssl.SSLError) -> str:
        return stream_reason(error, self._contexts.shows_certificate)

    def _refused(self, reason: str) -> str:
        self.addresses = []  # what is wrong with the name or the certificates is so at every address
        return reason

    def _tell_why(self, sock: socket.socket) -> None:
        """Have the peer know as well, if its socket takes it."""
        try:
            self._queue.write_to(sock, HANDSHAKE_BYTES)
        except OSError:
            pass

    def _decrypt(self, scratch: memoryview, frames: list[memoryview]) -> bool:
        """Cut frames from all that has come in; False after the peer's farewell."""
        tls, splitter = self._tls, self.splitter
        assert tls is not None
        while self._incoming.pending or tls.pending():
            own = splitter.space()
            try:
                count, goes_on = decrypted(tls, self._incoming, scratch if own is None else own)
            except ssl.SSLError as error:
                raise ProtocolError(self._explained_amid(error)) from None
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


def decrypted(tls: ssl.SSLObject, incoming: ssl.MemoryBIO, target: memoryview) -> tuple[int, bool]:
    """How many bytes of all that has come in are in `target` now, and whether the peer has not said farewell.

    Many records at a time: librdkafka makes one of each record of its batches, and each is a call. Where they have ended nothing is
    read: to be told so by an exception costs as much as a record.
    """
    # typeshed knows bytearrays only, and of the result nothing.
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


def taken_over(queue: SendQueue) -> TlsSendQueue:
    """A queue for TLS with the frames that were pushed already."""
    fresh = TlsSendQueue()
    fresh.take_over(queue)
    return fresh


class TlsServerChannel(TlsChannel):
    """A connection that came in: the peer begins the handshake."""

    __slots__ = ()

    hung_up = CLIENT_HUNG_UP

    def attach(self, sock: socket.socket) -> None:
        """Take over a socket; it is connected when the handshake is over."""
        super().attach(sock)
        self.connecting = True
        self._tls = self._contexts.current().wrap_bio(self._incoming, self._queue.out, server_side=True)

    def finish_connecting(self) -> str | None:
        """Go on with the handshake; None while that takes more."""
        assert self._tls is not None
        reason = self._shake_hands(self._tls)
        self.newcomer = self.connecting or isinstance(self.splitter, NewcomerSplitter)
        return reason

    @property
    def peer_certificate(self) -> Any:
        """What the client showed, as Python's ssl tells it; None where it showed nothing."""
        return None if self._tls is None or self.connecting else self._tls.getpeercert() or None

    def _explained(self, error: ssl.SSLError) -> str:
        return client_reason(error)

    def _explained_amid(self, error: ssl.SSLError) -> str:
        return client_reason(error)
