"""A port that accepts connections."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Any

from ottla.cannot_listen import cannot_listen
from ottla.network.memory_budget import UNLIMITED
from ottla.network.resolver import strip_scope

log = logging.getLogger(__name__)

BACKLOG = 1024
ACCEPTS_PER_TURN = 64
PAUSE = 0.1
"""The time in seconds for which new connections stay in the kernel's queue after a lack of descriptors or memory."""
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class ConnectionLimit:
    """The limit of simultaneous accepted connections, shared by several listeners."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.is_reached = False
        """True while new connections stay in the kernel's queue; set by the selector."""

    @property
    def available(self) -> int:
        """The number of further connections that may be accepted."""
        return max(self.most - self.count, 0)


class Listener:
    """A bound port. Connections are refused until `open`; the selector accepts them."""

    def __init__(
        self,
        host: str,
        port: int,
        make_channel: Any = None,
        max_frame_bytes: int | None = None,
        limit: ConnectionLimit | None = None,
    ) -> None:
        """Bind the port; raise OSError with the reason if that fails.

         `make_channel` and `max_frame_bytes` override the selector's for accepted connections. Without `limit` the
        listener accepts as many connections as descriptors allow.
        """
        self.limit = limit or ConnectionLimit(UNLIMITED)
        self.make_channel = make_channel
        self.max_frame_bytes = max_frame_bytes
        family, sockaddr = passive_address(host, port)
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.socket.setblocking(False)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(sockaddr)
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, cannot_listen(error, host, port)) from None
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.is_open = False
        """True once the kernel accepts connections."""
        self.paused_until: float | None = None
        self._complained = False

    def open(self) -> None:
        """Start to listen; raise OSError if another socket that was bound to the same port listens already."""
        try:
            self.socket.listen(BACKLOG)
        except OSError as error:
            raise OSError(error.errno, cannot_listen(error, *self.address)) from None
        self.is_open = True

    def accept(self, now: float, room: int = ACCEPTS_PER_TURN) -> list[tuple[socket.socket, tuple[str, int]]]:
        """Accept pending connections, at most `room`; pause if descriptors or memory are exhausted."""
        newcomers: list[tuple[socket.socket, tuple[str, int]]] = []
        for _ in range(min(room, ACCEPTS_PER_TURN)):
            try:
                sock, peer = self.socket.accept()
            except BlockingIOError:
                self._complained = False
                break
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self.pause(now, error.strerror or str(error))
                    break
                continue  # the peer closed the connection before it was accepted
            newcomers.append((sock, peer[:2]))
        return newcomers

    def close(self) -> None:
        self.socket.close()

    close_socket = close

    def pause(self, now: float, reason: str) -> None:
        """Leave new connections in the kernel's queue for a moment; the reason is logged once."""
        self.paused_until = now + PAUSE
        if not self._complained:
            self._complained = True
            host, port = self.address
            log.warning("%s:%s accepts no connections for now: %s", host, port, reason)


def passive_address(
    host: str, port: int
) -> tuple[int, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]:
    """Return the address family and socket address to bind; raise OSError for an invalid `host`."""
    try:
        found = socket.getaddrinfo(strip_scope(host) or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        unresolved = OSError(None, error.strerror if isinstance(error, OSError) else str(error))
        raise OSError(errno.EADDRNOTAVAIL, cannot_listen(unresolved, host, port)) from None
    return found[0][0], found[0][4]
