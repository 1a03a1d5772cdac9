"""One connection: frames in, frames out, and the state between.

Does the socket calls of one file descriptor; when to do them is the selector's business.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Hashable, Sequence

from ottla.model import Part
from ottla.network.frame_buffers import FrameBuffers
from ottla.network.frames import FrameSplitter, NewcomerSplitter
from ottla.network.listener import Listener
from ottla.network.poller import ENDED, READ, WRITE
from ottla.network.refusal import NobodyThere
from ottla.network.resolver import Address
from ottla.network.send_queue import Frames, SendQueue

READ_BYTES_PER_TURN = 1024 * 1024
WRITE_BYTES_PER_TURN = 4 * 1024 * 1024
"""What one connection may move before the others get their turn."""

REFUSED = "connection refused"
BUFFER_OPTIONS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


class Channel:
    """A socket with the frames it is receiving and sending."""

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
        """Where it came in; None for a connection of our own making."""
        self.socket: socket.socket | None = None
        self.splitter = FrameSplitter(max_frame_bytes, buffers)
        self.outgoing = SendQueue()
        self.addresses: list[Address] = []
        self.buffer_sizes = (-1, -1)
        """Of the socket, for what is sent and received; negative: as the operating system likes."""
        self.deadline: float | None = None
        self.connecting = True
        self.corked = False
        """Whether frames wait for others that are about to come, in `kept`."""
        self.kept: list[Sequence[Part]] = []
        self.muted = False
        self.stalled = False
        """Whether it waits amid a frame until there is memory for more."""
        self.ended = False
        """True if the peer of a stalled channel sends no more, and the rest of the frame is in the socket."""
        self.held_bytes = 0
        """What it counts for in the account of the memory."""
        self.half_closed = False
        self.newcomer = False
        """Whether it came in and has a handshake or a login before it yet: it waits for those that are done with that."""
        self.interest = 0

    def admit(self, max_frame_bytes: int) -> None:
        """It is known who is there: what comes is served as everybody's is."""
        self.newcomer = False
        self.splitter.allow(max_frame_bytes)

    def attach(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.local = sock.getsockname()[:2]
        self.connecting = False
        self.deadline = None

    def start_connecting(self) -> str:
        """Begin with the next address that can be begun; return why none could, or nothing."""
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
        """Settle what the readiness of a connecting socket means; return why it failed, or nothing; None: not yet."""
        sock = self.open_socket
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            return reason_of(OSError(code, os.strerror(code)))
        try:
            if sock.getsockname() == sock.getpeername():
                # A port nobody listens on, chosen by chance as our own: TCP then connects a socket to itself.
                return NobodyThere(REFUSED)
            self.attach(sock)
        except OSError as error:
            return reason_of(error)
        return ""

    @property
    def open_socket(self) -> socket.socket:
        """The socket, known to be there."""
        assert self.socket is not None
        return self.socket

    def wanted(self) -> int:
        if self.connecting:
            return WRITE
        read = 0 if self.muted or self.half_closed or self.stalled else READ
        if self.stalled and not self.ended:
            read = ENDED
        return read | (WRITE if self.outgoing else 0)

    def unread_bytes(self) -> int:
        """The number of bytes that have arrived in the socket and were not read."""
        import fcntl  # not on every system, and only asked where there is epoll
        import termios

        count = bytearray(4)
        fcntl.ioctl(self.open_socket.fileno(), termios.FIONREAD, count)
        return int.from_bytes(count, sys.byteorder)

    def read(self, scratch: memoryview, frames: list[memoryview], budget: int = READ_BYTES_PER_TURN) -> bool:
        """Receive this turn's share into `frames`; False at the end of the stream."""
        sock = self.open_socket
        splitter = self.splitter
        while budget > 0:
            own = splitter.space()
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
        """Have one frame wait: for the socket, or for others while it is corked."""
        if self.corked:
            self.kept.append(parts)
        else:
            self.outgoing.push(parts)

    def uncork(self) -> Frames:
        """Keep no more; the frames that were kept, where they may leave at once, else they are queued."""
        self.corked = False
        kept, self.kept = self.kept, []
        if not self.outgoing and not self.connecting:
            return kept
        for parts in kept:
            self.outgoing.push(parts)
        return ()

    def send(self, frames: Frames) -> int:
        """Send frames, where none waits, as far as the socket takes them; return how many were completed."""
        completed = self.outgoing.send_alone(self.open_socket, frames)
        if completed >= 0:
            return completed
        for parts in frames:
            self.push(parts)
        return self.write()

    def write(self) -> int:
        """Send this turn's share; return how many frames were completed."""
        return self.outgoing.write_to(self.open_socket, WRITE_BYTES_PER_TURN)

    def end_sending(self) -> None:
        """Tell the peer that nothing more comes."""
        try:
            self.open_socket.shutdown(socket.SHUT_WR)
        except OSError:  # it has gone, as the next poll tells
            pass

    def close(self) -> None:
        """Let go of the socket and of everything queued."""
        self.outgoing.clear()
        self.kept = []
        self.addresses = []
        self.close_socket()

    def close_socket(self) -> None:
        """Let go of the socket alone."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def reason_of(error: Exception) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, ConnectionRefusedError):
        return NobodyThere(REFUSED)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the peer reset the connection"
    if isinstance(error, TimeoutError):
        return "connection timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    told = error.args[0] if error.args else ""
    return told if isinstance(told, str) and told else str(error)  # as it is: it may be of a kind of its own


MakeChannel = Callable[[Hashable, int, tuple[str, int], FrameBuffers], Channel]


def accepted_channel(
    listener: Listener, sock: socket.socket, parts: tuple[Hashable, int, tuple[str, int], FrameBuffers]
) -> Channel | None:
    """The channel of a newcomer, of the kind that its listener makes; None where it has left again."""
    channel_id, most, peer, buffers = parts
    channel: Channel = (listener.make_channel or Channel)(channel_id, listener.max_frame_bytes or most, peer, buffers)
    channel.listener = listener
    if listener.max_frame_bytes is not None:
        channel.splitter = NewcomerSplitter(listener.max_frame_bytes, buffers)
    try:
        channel.attach(sock)
        channel.newcomer = channel.connecting or listener.max_frame_bytes is not None
    except OSError:  # or there is no TLS to be had
        sock.close()
        return None
    return channel
