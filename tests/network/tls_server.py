"""An independent TLS server: Python's ssl on a thread; a test can split and damage its bytes."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

PATIENCE = 60.0
Serve = Callable[["Line"], None]


class Line:
    """One connection as the server has it: frames, and the ciphertext under them."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.change: Callable[[bytes], Iterator[bytes]] = lambda data: iter([data])
        """Change the outgoing ciphertext: split it into pieces or damage it."""

    def shake_hands(self) -> None:
        self._do(self.tls.do_handshake)

    def frame(self) -> bytes:
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._do(partial(self.tls.read, size - len(data)))
            if not piece:
                raise EOFError
            data += piece  # type: ignore[operator]
        return data

    def send(self, frame: bytes) -> None:
        self.tls.write(struct.pack(">i", len(frame)) + frame)
        self.flush()

    def say_farewell(self) -> None:
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.flush()

    def flush(self) -> None:
        data = self.outgoing.read()
        for piece in self.change(data) if data else ():
            self.sock.sendall(piece)

    def _do(self, step: Callable[[], object]) -> object:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self.flush()
                data = self.sock.recv(65536)
                if not data:
                    raise EOFError from None
                self.incoming.write(data)
            else:
                self.flush()
                return done


def echo(line: Line) -> None:
    """Send every frame back."""
    line.shake_hands()
    while True:
        line.send(line.frame())


def attend(line: Line, serve: Serve) -> None:
    """Serve one connection until either side closes it."""
    with line.sock:
        try:
            serve(line)
        except ssl.SSLError:
            try:
                line.flush()  # the alert
            except OSError:
                pass
        except (OSError, EOFError):
            pass


@contextmanager
def tls_server(context: ssl.SSLContext, serve: Serve = echo) -> Iterator[int]:
    """Serves every connection on a thread of its own; the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lines: list[socket.socket] = []
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                sock.settimeout(PATIENCE)
                lines.append(sock)
                threads.append(threading.Thread(target=attend, args=(Line(sock, context), serve)))
                threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for sock in lines:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            for thread in [accepting, *threads]:
                thread.join(PATIENCE)
