"""One connection: received frames, frames to send, and the state between.

A channel does the socket calls of one file descriptor; the selector decides when.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Hashable, Sequence

from ottla.model import Part
from ottla.network.frame_buffers import FrameBuffers
from ottla.network.frames import FrameSplitter, UnauthenticatedSplitter
from ottla.network.listener import Listener
from ottla.network.poller import ENDED, READ, WRITE
from ottla.network.refusal import NotListening
from ottla.network.resolver import ResolvedAddress
from ottla.network.send_queue import Frames, SendQueue

READ_BYTES_PER_TURN = 1024 * 1024
WRITE_BYTES_PER_TURN = 4 * 1024 * 1024
"""The limits for one connection per iteration, so that other connections are served too."""

REFUSED = "connection refused"
BUFFER_OPTIONS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


class Channel:
    """A socket with the frames that it receives and sends."""

    __slots__ = (
        "addresses",
        "buffer_sizes",
        "channel_id",
        "connecting",
        "corked",
        "deadline",
        "ended",
        "half_closed",
        "held_bytes",
        "interest",
        "kept",
        "listener",
        "local",
        "muted",
        "newcomer",
        "outgoing",
        "peer",
        "socket",
        "splitter",
        "stalled",
    )

    def __init__(
        self,
        channel_id: Hashable,
        max_frame_bytes: int,
        peer: tuple[str, int],
        buffers: FrameBuffers | None = None,
    ) -> None:
        self.channel_id = channel_id
        self.peer = peer
        self.local = ("", 0)
        self.listener: Listener | None = None
        """The listener that accepted it; None for a connection that this side opened."""
        self.socket: socket.socket | None = None
        self.splitter = FrameSplitter(max_frame_bytes, buffers)
        self.outgoing = SendQueue()
        self.addresses: list[ResolvedAddress] = []
        self.buffer_sizes = (-1, -1)
        """The socket's send and receive buffer sizes; negative: the operating system's default."""
        self.deadline: float | None = None
        self.connecting = True
        self.corked = False
        """True while frames are collected in `kept` to be sent together."""
        self.kept: list[Sequence[Part]] = []
        self.muted = False
        self.stalled = False
        """True while it waits in the middle of a frame for memory."""
        self.ended = False
        """True if the peer of a stalled channel sends no more, and the rest of the frame is in the socket."""
        self.held_bytes = 0
        """Its bytes in the memory budget."""
        self.half_closed = False
        self.newcomer = False
        """True while an accepted connection has its handshake or login ahead; these are served after established ones.
        """
        self.interest = 0

    def lift_limits(self, max_frame_bytes: int) -> None:
        """Lift the limits of an unauthenticated connection."""
        self.newcomer = False
        self.splitter.set_max_frame_bytes(max_frame_bytes)

    def attach(self, sock: socket.socket) -> None:
        """Make a connected socket non-blocking, without Nagle's delay, and use it."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.local = sock.getsockname()[:2]
        self.connecting = False
        self.deadline = None

    def start_connecting(self) -> str:
        """Start to connect to the next possible address; return an empty text, or the last error if none is left."""
        reason = "the host name has no address"
        while self.addresses:
            address = self.addresses.pop(0)
            try:
                self.socket = socket.socket(address.family, socket.SOCK_STREAM)
                self.socket.setblocking(False)
                for option, size in zip(BUFFER_OPTIONS, self.buffer_sizes, strict=True):
                    if size >= 0:
                        self.socket.setsockopt(socket.SOL_SOCKET, option, size)
                code = self.socket.connect_ex(address.sockaddr)
            except (OSError, OverflowError, UnicodeError) as error:
                reason = reason_of(error)
            else:
                if code in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
                    return ""
                reason = reason_of(OSError(code, os.strerror(code)))
            self.close_socket()
        return reason

    def finish_connecting(self) -> str | None:
        """Handle the readiness of a connecting socket: return an empty text, the error, or None if it is not finished."""
        sock = self.open_socket
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            return reason_of(OSError(code, os.strerror(code)))
        try:
            if sock.getsockname() == sock.getpeername():
                # If the port has no listener and is also chosen as the local port, TCP connects a socket to itself.
                return NotListening(REFUSED)
            self.attach(sock)
        except OSError as error:
            return reason_of(error)
        return ""

    @property
    def open_socket(self) -> socket.socket:
        """The socket; asserts that it exists."""
        assert self.socket is not None
        return self.socket

    def wanted_events(self) -> int:
        if self.connecting:
            return WRITE
        read = 0 if self.muted or self.half_closed or self.stalled else READ
        if self.stalled and not self.ended:
            read = ENDED
        return read | (WRITE if self.outgoing else 0)

    def unread_bytes(self) -> int:
        """Return the number of bytes that arrived in the socket and were not read."""
        import fcntl  # not available on every system, and only needed with epoll
        import termios

        count = bytearray(4)
        fcntl.ioctl(self.open_socket.fileno(), termios.FIONREAD, count)
        return int.from_bytes(count, sys.byteorder)

    def read(self, scratch: memoryview, frames: list[memoryview], budget: int = READ_BYTES_PER_TURN) -> bool:
        """Receive up to `budget` bytes and append complete frames to `frames`; return false at the end of the stream."""
        sock = self.open_socket
        splitter = self.splitter
        while budget > 0:
            own = splitter.free_space()
            asked = len(scratch if own is None else own)
            try:
                if own is None:
                    count = sock.recv_into(scratch)
                else:
                    with own:
                        count = sock.recv_into(own)
            except BlockingIOError:
                return True
            if not count:
                return False
            if own is None:
                splitter.feed(scratch[:count], frames)
            else:
                splitter.advance(count, frames)
            if count < asked:
                return True
            budget -= count
        return True

    def push(self, parts: Sequence[Part]) -> None:
        """Queue one frame, or keep it while the channel is corked."""
        if self.corked:
            self.kept.append(parts)
        else:
            self.outgoing.push(parts)

    def uncork(self) -> Frames:
        """Stop to keep frames. Return those that can be sent at once; otherwise queue them and return none."""
        self.corked = False
        kept, self.kept = self.kept, []
        if not self.outgoing and not self.connecting:
            return kept
        for parts in kept:
            self.outgoing.push(parts)
        return ()

    def send(self, frames: Frames) -> int:
        """Send frames while the queue is empty; return the number of completed frames. The rest is queued."""
        completed = self.outgoing.send_alone(self.open_socket, frames)
        if completed >= 0:
            return completed
        for parts in frames:
            self.push(parts)
        return self.write()

    def write(self) -> int:
        """Send up to the limit of an iteration; return the number of completed frames."""
        return self.outgoing.write_to(self.open_socket, WRITE_BYTES_PER_TURN)

    def end_sending(self) -> None:
        """Shut down the sending side."""
        try:
            self.open_socket.shutdown(socket.SHUT_WR)
        except OSError:  # the connection is closed, as the next poll reports
            pass

    def close(self) -> None:
        """Close the socket, and drop everything that is queued."""
        self.outgoing.clear()
        self.kept = []
        self.addresses = []
        self.close_socket()

    def close_socket(self) -> None:
        """Close the socket without dropping queued frames."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def reason_of(error: Exception) -> str:
    """Return the reason of a failed connection in a few words."""
    if isinstance(error, ConnectionRefusedError):
        return NotListening(REFUSED)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the peer reset the connection"
    if isinstance(error, TimeoutError):
        return "connection timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    reason = error.args[0] if error.args else ""
    return reason if isinstance(reason, str) and reason else str(error)  # as it is: it may be of a kind of its own


MakeChannel = Callable[[Hashable, int, tuple[str, int], FrameBuffers], Channel]


def accepted_channel(
    listener: Listener, sock: socket.socket, parts: tuple[Hashable, int, tuple[str, int], FrameBuffers]
) -> Channel | None:
    """Return the channel of an accepted connection, made by its listener; None if the peer has closed it."""
    channel_id, most, peer, buffers = parts
    channel: Channel = (listener.make_channel or Channel)(channel_id, listener.max_frame_bytes or most, peer, buffers)
    channel.listener = listener
    if listener.max_frame_bytes is not None:
        channel.splitter = UnauthenticatedSplitter(listener.max_frame_bytes, buffers)
    try:
        channel.attach(sock)
        channel.newcomer = channel.connecting or listener.max_frame_bytes is not None
    except OSError:  # also if TLS could not be started
        sock.close()
        return None
    return channel
